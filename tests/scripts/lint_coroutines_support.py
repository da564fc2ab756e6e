"""scripts/lint_coroutines as a module, and what its tests share."""

import importlib.machinery
import importlib.util
import pathlib
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOADER = importlib.machinery.SourceFileLoader("lint_coroutines", str(ROOT / "scripts" / "lint_coroutines"))
SPEC = importlib.util.spec_from_loader("lint_coroutines", LOADER)
tool = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(tool)

TYPES = """
struct point { int x; int y; std::optional<std::chrono::nanoseconds> when; };
struct reply { std::string text; int code = 0; };
struct outer { reply inner; };
class stored { public: stored(std::string text); private: std::string text_; };
struct made { made(int); std::string text; };
enum class kind { a, b };
using answer = reply;
"""
FUNCTIONS = """
reply named(int x = 3) { return {}; }
struct holder {
    static std::optional<int> where(int);
    const reply& view(bool) const;
    task<bool> yes(); task<int> number(int = 3);
    [[nodiscard]] static constexpr auto count_of(int x) noexcept -> std::size_t;
    reply *pointed();
    task<> take(reply x, int n = 3);
    task<> place(point x, const std::string& text = "x");
    template <class T> task<> with(T x, reply y = {});
    task<> calling(std::function<int()> f = [all = std::string{"x"}] { return 1; });
};
"""
MORE_TYPES = """
typedef reply message;
template <class T> using array_of = std::array<T, 2>;
template <class T> struct box_of { T value; };
struct unnamed { struct { std::string text; } in; };
struct unnamed_too { union { int x; }; struct { std::string text; }; };
struct by_macro { FIELD(std::string, text); };
struct derived : reply { int x; };
struct failure : std::exception {};
struct failure_of_ours : public failure { std::string text; };
struct inheriting : made { using made::made; };
struct polymorphic { virtual ~polymorphic() = default; std::string text; };
struct EXPORTED boxed { boxed(reply x); explicit boxed(int); task<> go(); };
struct unboxed { explicit unboxed(int, reply x = {"x"}); task<> go(); };
struct caller { task<> operator()(reply x) const; };
namespace one { struct two_of_a_name { std::string text; }; }
namespace two { struct two_of_a_name { two_of_a_name(std::string); std::string text; }; }
namespace three { struct settings { int x; }; struct texts { std::string text; }; }
namespace four { struct settings { three::settings y; }; struct texts { three::texts other; }; }
task<> send_one(reply);
task<> send_one(point, int);
template <class T = reply> task<> send_any(T x);
"""


def found(code, name="x.cpp"):
    """[(line, column, message)], of a file."""
    source = tool.Source(pathlib.Path(name), textwrap.dedent(code))
    types = tool.Source(pathlib.Path("types.hpp"), TYPES)
    return [hit[1:] for hit in tool.lint([source], [types])]


class Case(unittest.TestCase):
    def assert_found(self, word, *bodies, before=""):
        for body in bodies:
            with self.subTest(body):
                hits = found(f"{before}\ntask<> f(bool b, int n) {{\n{body}\n}}\n")
                self.assertTrue(hits, "not found")
                self.assertTrue(any(word in message for _, _, message in hits), hits)

    def assert_right(self, *bodies, before=""):
        for body in bodies:
            with self.subTest(body):
                self.assertEqual(found(f"{before}\ntask<> f(bool b, int n) {{\n{body}\n}}\n"), [])
