"""The shapes that scripts/lint_coroutines finds, and those that it accepts.

The shapes were compiled by g++ 12.2 and clang++-19 and run. Shapes that are accepted behaved the same with
both; shapes that are found behaved differently, or do with some type that the name may stand for.
"""

import unittest

from lint_coroutines_support import FUNCTIONS, MORE_TYPES, Case, found


class ConditionTest(Case):
    def test_the_result_is_lost_where_nothing_is_declared(self):
        self.assert_found("declares nothing",
                          "while (co_await more()) use();",
                          "while (!co_await more()) { use(); }",
                          "do use(); while (co_await more());",
                          "for (; co_await more();) use();",
                          "if (co_await more()) use(); else stop();",
                          "if (b) use(); else if (co_await more()) stop();",
                          "for (;;) { co_await step(); if (co_await more()) co_return; }",
                          "switch (co_await number()) { case 1: use(); }",
                          "static_assert(true); if (co_await more()) use();",
                          "try { while (co_await more()) use(); } catch (...) { stop(); }",
                          "if (co_await more()) [[likely]] use();",
                          "use(); again: if (co_await more()) goto again;",
                          "{ { if (co_await more() == 3) use(); } }")

    def test_a_declaration_anywhere_saves_it(self):
        self.assert_right("int left = 3; while (co_await more()) --left;",
                          "while (co_await more()) { const auto x = read(); use(x); }",
                          "if (co_await more()) use(); { std::string text; }",
                          "std::map<int, std::string>::iterator at; if (co_await more()) use();",
                          "for (auto& each : list) use(each); if (co_await more()) use();",
                          "for (int i = 0; co_await more(); ++i) use();",
                          "using type = int; if (co_await more()) use();",
                          "struct local { int x; }; if (co_await more()) use();",
                          "try { while (co_await more()) use(); } catch (const error&) { stop(); }",
                          "if (auto x = co_await more()) use(x); else stop();",
                          "while (auto x = co_await more()) use(*x);",
                          "if (auto x = co_await more(); !x) co_return;",
                          "switch (const int x = co_await number()) { case 1: use(); }",
                          "if (b) co_await step();",
                          "auto [x, y] = pair(); if (co_await more()) use();")

    def test_a_closure_and_a_pointer_to_a_function_are_declarations(self):
        self.assert_right("use([] { return 3; }()); if (co_await more()) use();",
                          "if (co_await more()) use(); use([](int x) { return x; }(3));",
                          "if ([] { return true; }() && co_await more()) use();",
                          "void (*g)(int) = use; if (co_await more()) use();",
                          "int (type::*g)() = &type::go; if (co_await more()) use();",
                          "int (&all)[3] = other; if (co_await more()) use();",
                          "std::integral auto x = 3; if (co_await more()) use();",
                          "alignas(8) int x = 3; if (co_await more()) use();")

    def test_a_product_is_none(self):
        self.assert_found("declares nothing", "one * two; if (co_await more()) use();",
                          "one * two = 3; if (co_await more()) use();", before="static int one = 3, two = 4;")
        self.assert_right("reply * two; if (co_await more()) use();")

    def test_only_what_every_build_declares_counts(self):
        def lines(code):
            return [line for line, _, _ in found(code)]

        self.assertEqual(lines("""\
            task<> f() {
            #ifdef COUNTED
                int n = 0;
                if (co_await more()) use();
            #endif
                while (co_await more()) use();
            }
            """), [6])
        self.assertEqual(lines("""\
            task<> f() {
            #if ONE
                int n;
            #elif TWO
                while (co_await more()) use();
            #endif
            }
            """), [5])
        self.assertEqual(lines("""\
            #ifndef HEADER
            task<> f() {
            #if 1
                int n;
            #else
                if (co_await more()) use();
            #endif
                if (co_await more()) use();
            }
            task<> g() {
            #ifdef ONE
                int n = 1;
            #elif TWO
            #if THREE
                int n = 2;
            #else
                int n = 3;
            #endif
            #else
                int n = 4;
            #endif
                if (co_await more()) use(n);
            }
            task<> h() {
            #if 0
                int n = 1;
            #else
                if (co_await more()) use(n);
            #endif
            }
            #endif
            """), [28])

    def test_closures_and_other_functions_are_judged_on_their_own(self):
        self.assert_right("spawn([&]() -> task<> { while (co_await more()) use(); });")
        hits = found("""\
            task<> first() { int x = 0; }
            struct holder {
                task<> second() const { while (co_await more()) use(); }
                template <class T> static task<T> third(T x) noexcept { if (co_await more()) use(); }
            };
            auto fourth() -> task<std::vector<int>> { if (co_await more()) use(); }
            TEST_P(suite, name) { if (co_await more()) use(); }
            task<> caught() try { if (co_await more()) use(); } catch (...) {}
            holder::holder() : a_{1}, b_(2) { if (co_await more()) use(); }
            """)
        self.assertEqual([line for line, _, _ in hits], [3, 4, 6, 7, 8, 9])

    def test_continue_skips_the_condition_of_a_do_loop(self):
        self.assert_found("continue skips", "int i = 0; do { if (b) continue; use(); } while (co_await more());",
                          "int i = 0; do { switch (n) { case 1: continue; } } while (co_await more());")
        self.assert_right("int i = 0; do { for (;;) continue; } while (co_await more());",
                          "int i = 0; do { if (b) continue; } while (more()); co_await step();",
                          "int i = 0; while (co_await more()) { if (b) continue; use(); }")


class OperatorTest(Case):
    def test_an_arm_of_a_conditional(self):
        self.assert_found("arm of ?:",
                          "co_return b ? co_await one() : co_await two();",
                          "std::string x = b ? co_await one() : co_await two();",
                          "auto x = b ? co_await one() : co_await two();",
                          "bool x = b ? true : n ? co_await one() : co_await two();",
                          "if (b ? co_await one() : co_await two()) use(n);",
                          "if ((b ? co_await number() : 3) && n) use(n); int x = 0;",
                          "b ? co_await one() : co_await two();",
                          "while (b ? co_await yes() : true) use(n);",
                          "int x = (b ? 1 : co_await number()) ? 3 : 4;",
                          "use(n ?: co_await number());",
                          "auto x = list[b ? 1 : co_await number()];",
                          "use(b ? co_await one() : 3);",
                          "x = (b ? n : n > 2 ? 3 : co_await one());",
                          "auto x = b\n    ? co_await one()\n    : 2;",
                          "auto f = [x = b ? co_await one() : 2] { return x; };", before=FUNCTIONS)

    def test_an_arm_of_a_conditional_that_is_a_number_at_once(self):
        self.assert_right("const int x = b ? 1 : co_await number();",
                          "int x{b ? co_await number() : n ? 2 : co_await number()};",
                          "int x = 0; x = b ? n : n > 2 ? 3 : co_await number();",
                          "int x = n ?: co_await number();",
                          "bool x = b ? co_await yes() : co_await yes();",
                          "auto x = b ? co_await number() : 3;",
                          "int x = 0; if (b ? co_await yes() : false) use(x);",
                          "int x = 0; if (n && !(b ? co_await yes() : n ? true : co_await yes())) use(x);",
                          "int x = 0; switch (b ? co_await number() : 2) { case 1: use(x); }",
                          "int x = 0; b ? (void)co_await one() : (void)co_await two();",
                          "int x = b ? co_await number() : throw 1;", before=FUNCTIONS)

    def test_a_conditional_without_an_await_in_its_arms(self):
        self.assert_right("int x = co_await more() ? 1 : 2;",
                          "co_await step(b ? 1 : n);",
                          "co_await step(b ? std::move(x) : std::move(y));",
                          "co_await step(b ? \"one\" : \"other\");",
                          "co_await step(b ? number() : 4);",
                          "auto t = b ? one() : two(); co_await std::move(t);")

    def test_a_temporary_in_an_arm(self):
        self.assert_found("temporary in its arms",
                          "co_await (b ? one() : two());",
                          "co_await step(b ? std::string{\"x\"} : text);",
                          "co_await step(b ? text : \"none\");",
                          "auto x = co_await more() ? reply{} : other;",
                          'std::string s; co_await step(b ? s + "x" : s);',
                          "const std::string& s = text; co_await step(b ? s + s : s);",
                          "co_await step(b ? *name + \"x\" : text);",
                          "reply x, y; co_await step(b ? x - y : x);",
                          "co_return co_await more() ? size_of(std::string(text)) : 0;")

    def test_an_await_behind_a_logical_operator(self):
        self.assert_found("co_await behind &&",
                          "co_return b && co_await more();",
                          "int i = 0; while (b && co_await more()) use();",
                          "int i = 0; do use(); while (i < 3 && co_await more());",
                          "for (int i = 0; i < 3 && co_await more(); ++i) use();",
                          "use(b && co_await more());",
                          "EXPECT_TRUE(b && co_await more());",
                          "int x = b && co_await more();",
                          "std::optional<bool> x = b && co_await more();",
                          "std::vector<bool> x(1, b && co_await more());",
                          "int x = 0; use(x), b && co_await more();",
                          "int x = 0; if (b && co_await more(), n) use(x);",
                          "int x = 0; while (use(), b && co_await more()) use(x);",
                          "marked m; m.count = b && co_await more();",
                          "auto x = co_await step(b && co_await more());",
                          "if (b && co_await more() && n) use(n); int x = 0;",
                          "if ((b && co_await more()) || n) use(n); int x = 0;",
                          "std::string s; s = b && co_await more();",
                          "bool x{f(b and co_await more())};", before="struct marked { bool is; int count; };")
        self.assert_found("co_await behind ||", "co_return co_await more() || co_await more();",
                          "if (b || co_await more() || n) use(); int x = 0;")

    def test_where_a_logical_operator_is_right(self):
        self.assert_right("int x = 0; if (b && co_await more()) use();",
                          "int x = 0; if (b && n > 2 && !co_await more()) use();",
                          "int x = 0; if (!(b || (n && co_await more()))) use();",
                          "bool x = b && co_await more();",
                          "const auto x = b || co_await more();",
                          "bool x{b && co_await more()};",
                          "bool x = true; x = x && co_await more();",
                          "int x = 0; b && co_await more();",
                          "int x = 0; (void)(b && co_await more());",
                          "if (bool x = b && co_await more()) use();",
                          "int x = 0; while (co_await more() && b) use();",
                          "co_return co_await more() && n > 3;",
                          "if (auto x = co_await more(); x && use()) stop();",
                          "auto&& x = co_await more();", "std::vector<int>&& x = co_await more();",
                          "co_await step(same<int&&, long>, [](auto&& a, int&& b) { return a && b; });",
                          "const bool x = b && n; co_await step();",
                          "const bool& x = b && co_await more();",
                          "int x = 0; static_cast<void>(b && co_await more());",
                          "int x = 0; if (use(), b && co_await more()) use(x);",
                          "int x = 0; co_await (one() || two()); co_await ((one() && two()) || text());",
                          "marked m; m.is = b && co_await more(); marked* p = &m; p->is = b && co_await more();",
                          before="struct marked { bool is; int count; };")
        self.assertEqual(found("struct s { task<> f() { is_ = b && co_await more(); this->is_ = b && co_await more(); }"
                               " bool is_; };"), [])

    def test_a_temporary_behind_a_logical_operator(self):
        self.assert_found("the temporary behind",
                          "int x = 0; if (co_await more() && name().empty()) use();",
                          "int x = 0; if (!co_await more() || reply{\"x\"}.code) use();",
                          "bool x = co_await more() && check(make());",
                          "co_await step(p && p->name().empty());",
                          'int x = 0; if (co_await more() && !(*p + "x").empty()) use(x);',
                          "reply x, y; if (co_await more() && x + y) use();",
                          "reply x; if (co_await more() && -x) use();")
        self.assert_found("the temporary behind",
                          "int x = 0; if (co_await more() && named()) use();",
                          "int x = 0; if (co_await more() && where(n) == 3) use();",
                          "int x = 0; if (co_await more() && stored(n)) use();", before=FUNCTIONS)
        self.assert_right("int x = 0; if (co_await more() && check()) use();",
                          "int x = 0; if (co_await more() && list.size() > 3) use();",
                          "int x = 0; if (co_await more() && std::move(y).code) use();",
                          "int x = 0; if (co_await more() && check(count_of(y))) use();",
                          "int x = 0; if (co_await more() && view(b).is_open()) use();",
                          "int x = 0; if (co_await more() && pointed()->code) use();",
                          "co_await step(b ? count_of(n) : count_of(n + 1));",
                          "std::string s; if (co_await more() && s == \"x\") use();",
                          "std::string* s = 0; if (co_await more() && s + 3 > s) use();",
                          "int x = 0; if (co_await more() && n + x > 3) use();", before=FUNCTIONS)


class TemporaryTest(Case):
    def test_closures_with_destructors(self):
        self.assert_found("captures of this closure",
                          "co_await [text]() -> task<> { co_await step(); }();",
                          "co_await spawn([text] { return text.size(); });",
                          "co_await with_timeout([text = std::move(text)]() -> task<> { co_return; }(), 2s);",
                          "co_await spawn([=] { use(text); });",
                          "co_await spawn([&, p = std::make_unique<int>(3)] { use(p); });",
                          "co_await spawn([*this] { use(); });",
                          "co_await spawn([...all = std::move(all)] { use(all...); });",
                          "const std::string& s = text; co_await spawn([s] { use(s); });",
                          "std::string s; co_await spawn([x = s] { use(x); });",
                          "std::string s; co_await spawn([b, s]() mutable { use(s); });",
                          "auto x = use([text] { return 1; }) + co_await number();",
                          "auto f = [text = co_await read()] { return text; };",
                          "co_await with_group([text](task_group& g) -> task<> {\n    co_await step();\n});")

    def test_closures_without(self):
        self.assert_right("co_await spawn([&] { use(text); });",
                          "co_await spawn([] { use(); });",
                          "co_await spawn([this, &text, &other = text] { use(text); });",
                          "co_await spawn([b, n] { use(b, n); });",
                          "const std::size_t size = 3; co_await spawn([size] { use(size); });",
                          "point p{}; kind k = kind::a; co_await spawn([p, k, left = 3, s = \"x\"] { use(p); });",
                          "co_await spawn([n = text.size(), at = &text] { use(n); });",
                          "int a = 1, c = 2, *p = &a; co_await spawn([&a, c, p] { use(c); });",
                          "auto f = [text] { use(text); }; co_await spawn(f);",
                          "auto h = spawn([text]() -> task<> { co_await step(); }); co_await h;",
                          "co_await step(list[n], std::string(text));")

    def test_a_copy_of_this(self):
        self.assertEqual([line for line, _, _ in found("""\
            struct small { task<> f() { co_await spawn([*this] {}); } int x; };
            struct large { task<> f() { co_await spawn([*this] {}); } std::string x; };
            task<> point::f() { co_await spawn([*this] {}); }
            task<> reply::f() { co_await spawn([*this] {}); }
            """)], [2, 4])

    def test_a_name_means_what_is_declared_around_it(self):
        self.assertEqual([line for line, _, _ in found("""\
            task<> f(int n) { co_await spawn([n] {}); }
            task<> g(std::string n) { co_await spawn([n] {}); }
            task<> h() { co_await spawn([n] {}); }
            struct s { task<> k() { co_await spawn([n] {}); } int n; };
            """)], [2, 3])

    def test_a_closure_in_a_statement_that_awaits_nothing(self):
        self.assertEqual(found("""\
            template <> task<std::pair<int, int>> pair_of<int>(context& c) { auto x = co_await one(); co_return x; }
            task<> f(int n) {
                switch (n) {
                case 5: { std::stop_source s; loop->post([s]() mutable { s.request_stop(); }); auto x = co_await one(); }
                }
            }
            """), [])

    def test_an_await_in_a_closure_is_the_closures(self):
        self.assert_right("auto f = [text]() -> task<bool> { auto x = co_await step(); co_return x; };",
                          "use([text]() -> task<> { co_await step(); }, reply{\"x\"}, b ? text : \"x\");")
        hits = found("""\
            void f() {
                auto outer = [&] {
                    return [&]() -> task<int> {
                        co_return b ? co_await one() : 2;
                    };
                };
            }
            """)
        self.assertEqual([line for line, _, _ in hits], [4])

    def test_aggregates_with_destructors(self):
        self.assert_found("members of this aggregate",
                          "co_await send(reply{\"x\", 3});",
                          "co_await send(reply{.text = \"x\"});",
                          "co_await send({.text = \"x\", .code = 1});",
                          "co_await send(reply(\"x\", 3));",
                          "co_await send(some::answer{text});",
                          "co_await send(outer{});",
                          "co_await send(unknown{.name = x});",
                          "co_await send({std::move(text), 3});",
                          "use(reply{text}, co_await number());",
                          "co_return reply{co_await read(), 3};",
                          "co_yield reply{text};",
                          "list.push_back({co_await read(), 3});",
                          "co_await send(std::array<std::string, 2>{a, c});",
                          "co_await send(array_of<std::string>{a, c});",
                          "std::string s; co_await send(std::array{s, s}, std::array{std::string(s), s});",
                          "std::string s; co_await send(reply(s)); co_await send(reply(std::move(s)));",
                          'co_await send(reply("text"));',
                          "co_await send(message{text, 3});",
                          "typedef reply said; co_await send(said{text, 3});",
                          "co_await send(box_of<std::string>{text}); co_await send(box_of{std::string(text)});",
                          "co_await send(unnamed{{text}});", "co_await send(unnamed_too{text});",
                          "co_await send(by_macro{text});", "co_await send(derived{{text, 3}, 3});",
                          "reply r; co_await send(r = {text, 3});",
                          "std::vector<reply> all; all.push_back({co_await read(), 3});",
                          "co_await send(local{text});", before=MORE_TYPES + "struct local { std::vector<int> v; };")

    def test_an_await_in_the_list_of_a_range(self):
        self.assert_found("elements of this list", "for (auto& x : {co_await read(), text}) use(x);",
                          "for (const std::string& x : {co_await read()}) use(x);")
        self.assert_right("for (int x : {co_await number(), co_await read()}) use(x);",
                          "for (auto x : {co_await number(), 3}) use(x);",
                          "for (auto x : {1, 2}) co_await use(x);")

    def test_the_parameter_says_what_braces_are(self):
        self.assert_found("members of this aggregate",
                          "co_await boxed({text, 3}).go();", "co_await boxed{{text, 3}}.go();",
                          "co_await send_one({text, 3});", "co_await send_any({text, 3});",
                          "caller call; co_await call({text, 3});",
                          "auto call = [](reply x) -> task<> { co_return; }; co_await call({text, 3});",
                          "auto call = &send_any; co_await call({text, 3});", "auto* call = &send_any; co_await call({});",
                          "task<> (*call)(reply) = send_any; co_await call({text, 3});",
                          "std::function<task<>(int, reply)> call = send_any; co_await call(3, {text, 3});",
                          before=MORE_TYPES)
        self.assert_found("default argument", "co_await unboxed(3).go();", before=MORE_TYPES)
        self.assert_right("co_await send_one({3, 4}, 5);", "std::function<task<>(point)> call = g; co_await call({3, 4});",
                          "auto call = [](point x) {}; co_await call({std::move(n), 3});",
                          "std::map<int, std::string> all; all.insert({co_await number(), text});",
                          "std::vector<std::pair<int, std::string>> all; all.push_back({co_await number(), text});",
                          before=MORE_TYPES)

    def test_aggregates_that_only_the_called_function_names(self):
        self.assert_found("members of this aggregate", "co_await x.take({text});", "co_await x.take({});",
                          before=FUNCTIONS)
        self.assert_found("default argument", "co_await x.with(3);", "co_await calling();", before=FUNCTIONS)
        self.assert_right("co_await x.place({3, 4});", "co_await x.place({std::move(n), 4});", "co_await x.with(3, r);",
                          before=FUNCTIONS)

    def test_a_member_with_the_name_of_its_class_is_another_class(self):
        self.assert_right("co_await send(settings{{3}});", before=MORE_TYPES)
        self.assert_found("members of this aggregate", "co_await send(texts{{text}});", before=MORE_TYPES)

    def test_other_braces(self):
        self.assert_right("co_await send(point{1, 2});",
                          "co_await send({.x = 1, .y = 2});",
                          "co_await async_connect(to, {.timeout = 2s});",
                          "co_await with_group({.limit = 3}, body);",
                          "co_await send(std::string{text}, std::pair{text, 3});",
                          "co_await send(stored{text}, made{3}, unknown{text});",
                          "co_await send(std::array<char, 20>{});",
                          "co_await send(reply(other));",
                          "reply r; co_await send(reply{r}, reply(r), reply{std::move(r)});",
                          "co_await send(std::array{1, n}, array_of<int>{1, 2}, box_of<int>{3});",
                          "co_await send(failure{}, failure_of_ours{}, inheriting{3}, polymorphic{});",
                          "co_await send(two_of_a_name{text});",
                          "reply r{text, 3}; co_await send(r); co_await send(std::move(r));",
                          "co_return reply{text, 3};",
                          "co_await send(endpoint{ip_address::any_v4(), 80}, make_reply(text));", before=MORE_TYPES)

    def test_an_await_in_the_braces_of_a_declaration(self):
        self.assert_found("inside the braces",
                          "reply r{co_await read(), 3};",
                          "reply r = {.text = text, .code = co_await number()};",
                          "unknown r{.a = co_await number()};",
                          "std::string all[] = {co_await read(), text};",
                          "std::array<std::string, 2> all{co_await read(), text};")
        self.assert_right("point p{co_await number(), 2};",
                          "int all[] = {co_await number(), 2};",
                          "std::pair<std::string, int> p{co_await read(), 2};",
                          "std::optional<std::string> s{co_await read()};",
                          "int x{co_await number()}; unknown y{co_await read()};",
                          "steady_timer timer{co_await this_coro::executor, 1s};",
                          "stored s{co_await read(), 3};",
                          "reply a{text, 3}, *b{nullptr}; co_await step();")
        self.assert_found("inside the braces", "reply a, r{co_await read(), 3};")


if __name__ == "__main__":
    unittest.main()
