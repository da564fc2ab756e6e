"""How scripts/lint_coroutines reads C++, what it is allowed, and its command line."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest
import unittest.mock

from lint_coroutines_support import ROOT, Case, found, tool


class ReadingTest(Case):
    def test_comments_and_text_are_not_code(self):
        self.assert_right("// co_return b ? co_await one() : 2;\n/* b && co_await\n one() */ co_await step();",
                          'log("b ? co_await one() : 2"); log(\'?\', u8"\\"", LR"x(b && co_await )" )x");',
                          "const int x = 1'000'000; use(0x1'f, '\\'', x ? 1 : 2);",
                          "// a long comment \\\n co_return b ? co_await one() : 2;\nco_await step();")

    def test_places(self):
        self.assertEqual([(line, column) for line, column, _ in found(
            'auto s = R"(\n\n)"; task<> f() {\n\tco_return /*\n*/ b ?\n co_await one() : 2;\n}\n')], [(5, 6)])

    def test_preprocessor(self):
        self.assertEqual([line for line, _, _ in found("""\
            #include <x>
            #define TRY(x) (b && \\
                            co_await (x))
            #define ONE(x) if (co_await x) use()
            task<> f() {
            #if ONE // else
                if (b) {
            #else
                if (c) {
            #endif
                    co_return b ? co_await one() : 2;
                }
            #if 0
                co_return b ? co_await one() : 2;
            #elif TWO
                co_return b ? co_await one() : 3;
            #  else
                co_return b ? co_await one() : 4;
            #endif
            }
            """)], [2, 11, 16, 18])

    def test_templates_are_not_comparisons(self):
        self.assert_right("co_await step<a, c>(std::is_same_v<T&&, U>, map<int, list<int>>{}, b);",
                          "int x = n < 3 ? 1 : 2; co_await step(n < 3, n > 2);")
        self.assert_found("arm of ?:", "co_return n < 3 && n > 1 ? co_await one() : 2;",
                          "co_return std::max<int>(n, 3) ? co_await step<int>() : 2;",
                          "co_return a < n ? co_await one() : c > 2;")

    def test_bodies_inside_of_anything(self):
        hits = found("""\
            namespace a::inline b { extern "C" {
            template <class T> requires (sizeof(T) > 2)
            struct s : base<T> {
                s() : base<T>{1}, f_([] { return 1; }) {}
                ~s() { stop(); }
                std::function<task<>()> f_ = [this]() -> task<> { co_return b ? co_await one() : 2; };
                friend auto operator<=>(const s&, const s&) = default;
                task<> operator()(int = 3) && { co_return b ? co_await one() : 2; }
            private:
                enum class e { a, b } e_{};
                task<> g() try { co_return b ? co_await one() : 2; } catch (...) { co_return; }
            };
            } }
            void h() { struct in { task<> k() { co_return b ? co_await one() : 2; } }; }
            """)
        self.assertEqual([line for line, _, _ in hits], [6, 8, 11, 14])

    def test_other_spellings(self):
        self.assert_found("co_await behind &&", "use(b and not co_await more()); <% %>")

    def test_a_page(self):
        self.assertEqual([line for line, _, _ in found("""\
            # b ? co_await one() : 2
            ```cpp
            const auto x = b ? co_await one() : 2;
            ```
            ```sh
            b ? co_await one() : 2
            ```
            ```cpp
            task<> f() { use(b && co_await one());
            ```
            """, name="page.md")], [3, 9])

    def test_text_that_is_not_cpp_does_no_harm(self):
        for text in ("}}}}", "{{{{(", "co_await", "if (", "for (;;", "do co_await x while", "'\"", "#define x co_await",
                     "[[[", "a < b < c <", "case co_await ?:", "struct {", "/*", 'R"x(', "else else", "switch", "?:",
                     "for (int x : [] { int a{}; return v; }()) use(x);", "use(co_await y, o = {.retries = 3});", "for (;) use();",
                     "for (int i = 0; int x : v) use();", "using a = b; using b = a;", "typedef a a;", "#define (co_await",
                     "#define co_await", "#else", "#endif", "#elif x", "for (x; y) z;", "x{.co_await}",
                     "use([,x] {}, co_await y);", "use([x=] {}, co_await y);", "task<> g(<a b); use(co_await g({}));",
                     "} catch x {}", "auto [] {} catch x", "auto [x]() {}",
                     "template", "f() -> {", "co_await x ? : ;", "[", "x{,}", "task<> f() { x{.} co_await", "catch ("):
            with self.subTest(text):
                found(text)
                found(f"task<> f() {{ {text}\nco_await x; }}")
                found(f"task<> f() {{ co_await x({text}")


class AllowTest(Case):
    def test_a_reason_allows_one_line(self):
        self.assertEqual([line for line, _, _ in found("""\
            task<> f(unknown n) {
                co_await spawn([n] {}); // lint_coroutines: allow, n is a number
                // lint_coroutines: allow: n is a number
                co_await spawn([n] {});
                co_await spawn([n] {});
            }
            """)], [5])

    def test_without_a_reason_it_is_a_hit(self):
        hits = found("int x; // lint_coroutines: allow\n/* lint_coroutines: allow */\n")
        self.assertEqual([line for line, _, _ in hits], [1, 2])
        self.assertIn("reason", hits[0][2])


class CommandTest(unittest.TestCase):
    def run_tool(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = tool.main([str(each) for each in arguments])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def test_a_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            wrong = "task<> f() { co_return b ? co_await one() : 2; }\n"
            for name in ("a.cpp", "b.txt", "in/c.hpp", ".git/d.cpp", "build/e.cpp", "in/g.ixx"):
                (tree / name).parent.mkdir(exist_ok=True)
                (tree / name).write_text(wrong)
            (tree / "build" / "CMakeCache.txt").touch()
            (tree / "right.cpp").write_text("task<> f() { co_await one(); }\n")

            status, out, err = self.run_tool(tree)
            self.assertEqual(status, 1)
            self.assertEqual([line.split(": ")[0] for line in out.splitlines()],
                             [f"{tree}/{each}:1:26" for each in ("a.cpp", "in/c.hpp", "in/g.ixx")])
            self.assertIn("4 files, 3 found", err)

            status, out, err = self.run_tool(tree / "right.cpp")
            self.assertEqual((status, out), (0, ""))

            # A file named on the command line is checked whatever its name is.
            self.assertEqual(self.run_tool(tree / "b.txt")[0], 1)

    def test_types_of_another_file_are_known(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "z.hpp").write_text("struct parcel_of_text { std::string text; };\n")
            (tree / "a.cpp").write_text("task<> f() { co_await send(parcel_of_text{text}); }\n")
            self.assertEqual(self.run_tool(tree)[0], 1)
            self.assertEqual(self.run_tool(tree / "a.cpp")[0], 0)

    def test_wrong_use(self):
        self.assertEqual(self.run_tool()[0], 2)
        self.assertEqual(self.run_tool("--no-such-option")[0], 2)
        status, _, err = self.run_tool("/no/such/file.cpp")
        self.assertEqual(status, 2)
        self.assertIn("/no/such/file.cpp", err)
        self.assertEqual(self.run_tool("--help")[0], 0)

    def test_a_file_that_is_not_understood_does_not_hide_the_others(self):
        wrong = "task<> f() { co_return b ? co_await one() : 2; }\n"

        def fail_at(source, types, before=tool.lint_source):
            if source.path.name == "b.cpp":
                raise IndexError("list index out of range")
            return before(source, types)

        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for name in ("a.cpp", "b.cpp", "c.cpp"):
                (tree / name).write_text(wrong)
            with unittest.mock.patch.object(tool, "lint_source", fail_at):
                status, out, err = self.run_tool(tree, tree / "gone.cpp")
            self.assertEqual(status, 2)
            self.assertEqual([line.split(":")[0] for line in out.splitlines()],
                             [f"{tree}/{each}" for each in ("a.cpp", "c.cpp")])
            self.assertRegex(err, r"lint_coroutines: .*/b\.cpp: not understood \(IndexError in ")
            self.assertRegex(err, r"lint_coroutines: .*/gone\.cpp: No such file")
            self.assertIn("2 found", err)

    def test_it_is_a_program(self):
        self.assertTrue(os.access(ROOT / "scripts" / "lint_coroutines", os.X_OK))


if __name__ == "__main__":
    unittest.main()
