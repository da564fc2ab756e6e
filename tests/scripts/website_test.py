"""scripts/website: pages for Doxygen, and what is mended in its own."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from website import generated
from website.contents import Contents
from website.finish import finish
from website.markdown import Translation
from website.names import Names

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

README = "# lib\n\n[docs](docs/README.md)\n"
CONTENTS = """\
# Documentation

## For users

| page | about |
|---|---|
| [quickstart](usage/quick-start.md) | first |
| [streams](usage/streams.md#lines) | lines |

## For developers

| page | about |
|---|---|
| [tour](development/tour.md) | all |
| [decisions](development/decisions/README.md) | why |
"""
TAGS = """\
<tagfile>
  <compound kind="namespace"><name>simplenet</name>
    <member kind="function"><name>run</name></member>
    <member kind="enumeration"><name>errc</name><enumvalue>queue_full</enumvalue></member></compound>
  <compound kind="class"><name>simplenet::tcp_stream</name>
    <member kind="function"><name>release</name></member></compound>
  <compound kind="class"><name>simplenet::task</name></compound>
  <compound kind="class"><name>std::hash</name></compound>
  <compound kind="file"><name>task.hpp</name></compound>
</tagfile>
"""


class WebsiteTest(unittest.TestCase):
    """A tree with two pages for users, and the names of TAGS."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        self.put("README.md", README)
        self.put("docs/README.md", CONTENTS)
        self.put("docs/usage/quick-start.md", "# Quickstart\n")
        self.put("docs/usage/streams.md", "# Streams\n\n## Lines\n")
        self.put("docs/development/tour.md", "# Tour\n")
        self.put("docs/development/decisions/README.md",
                 "# Decisions\n\n| | |\n|---|---|\n| [0001](0001-data.md) | x |\n")
        self.put("docs/development/decisions/0001-data.md", "# 0001: data\n")
        self.put("names.tag", TAGS)
        self.names = Names.of(self.root / "names.tag")

    def put(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def translated(self, text, path="docs/usage/streams.md"):
        contents = Contents(self.root)
        self.files = set()
        return Translation(contents, self.names, contents.pages[pathlib.PurePath(path)], self.files).whole(text)


class Order(WebsiteTest):
    def test_is_that_of_the_tables(self):
        chapters = {each.title: [page.title for page in each.pages] for each in Contents(self.root).chapters}
        self.assertEqual(chapters, {"For users": ["Quickstart", "Streams"], "For developers": ["Tour"],
                                    "Decisions": ["Decisions", "0001: data"]})

    def test_a_page_that_no_table_has(self):
        self.put("docs/usage/lost.md", "# Lost\n")
        self.assertEqual(len(Contents(self.root).complaints()), 1)
        self.assertIn("docs/usage/lost.md", Contents(self.root).complaints()[0])

    def test_of_this_tree_is_complete(self):
        self.assertEqual(Contents(ROOT).complaints(), [])

    def test_the_navigation_has_a_tab_for_each_page(self):
        text = generated.layout("@quickstart@|@users@|@examples@|@groups@|@developers@|@decisions@",
                                Contents(self.root), [], "topics")
        parts = [part.strip() for part in text.split("|")]
        self.assertEqual(parts[1], '<tab type="user" url="@ref usage_streams" title="Streams"/>')
        self.assertEqual(parts[3], "topics")
        self.assertEqual(parts[5].count("<tab "), 2)
        self.assertIn('title="0001 data"', parts[5])


class Pages(WebsiteTest):
    def test_headings_have_anchors_of_their_page(self):
        self.assertEqual(self.translated("# Streams\n\n## A `line`, [then](x.md)\n"),
                         "# Streams {#usage_streams}\n\n## A line, then {#usage_streams__a-line-then}\n")

    def test_links_lead_to_pages_of_the_site(self):
        for link, leads in {"quick-start.md": "usage_quick_start.html", "../../README.md": "index.html",
                            "#lines": "usage_streams.html#usage_streams__lines",
                            "../development/decisions/": "decisions_readme.html",
                            "../../examples/echo_server.cpp": "echo_server_8cpp-example.html",
                            "../../examples/": "examples_list.html",
                            "https://example.org/a": "https://example.org/a"}.items():
            self.assertEqual(self.translated(f"[`x`]({link})"), f'<a href="{leads}"><code>x</code></a>')
            self.assertEqual(self.files, set())

    def test_other_files_come_along(self):
        self.assertEqual(self.translated("[l](../../LICENSE)"), '<a href="LICENSE.txt">l</a>')
        self.assertEqual(self.files, {pathlib.PurePath("LICENSE")})

    def test_names_become_links(self):
        for code, name in {"task<>": "task", "run()": "run", "tcp_stream::release": "tcp_stream::release",
                           "errc::queue_full": "errc::queue_full", "simplenet::run": "run"}.items():
            text = self.translated(f"`{code}`")
            self.assertTrue(text.startswith(f"<code>@ref simplenet::{name} "), text)

    def test_other_code_is_text(self):
        for code, text in {"'\\n'": "'\\\\n'", "@pre": "\\@pre", "a<b>": "a&lt;b&gt;", "::1": "\\::1",
                           "--fix": "\\--fix", "std::hash": "std\\::hash", "ctx.run()": "%ctx.run()", '"a_b"': "&quot;a\\_b&quot;",
                           "a \\|\\| b": "a \\|\\| b"}.items():
            self.assertEqual(self.translated(f"`{code}`"), f"<code>{text}</code>")

    def test_bold_text_may_have_code_and_several_lines(self):
        self.assertEqual(self.translated("> **a `b`\n> c**: d\n"), "> <b>a <code>b</code>\n> c</b>: d\n")

    def test_so_may_emphasis(self):
        self.assertEqual(self.translated("* *`a`\n  b.* c\n* d\n"), "* <em><code>a</code>\n  b.</em> c\n* d\n")
        self.assertEqual(self.translated("2 * 3 * 4, src/*/*.cpp"), "2 * 3 * 4, src/*/*.cpp")

    def test_images_come_from_the_folder_of_figures(self):
        self.assertEqual(self.translated("![echo](../figures/echo.svg)"), "![echo](echo.svg)")

    def test_blocks_of_code_stay_but_for_a_line_in_place_of_the_comment(self):
        text = "a\n\n<!-- snippet: x.cpp y -->\n```cpp\nrun(`x`);\n```\nb `c`\n"
        self.assertEqual(self.translated(text), "a\n\n```cpp\nusing namespace simplenet; // for links\nrun(`x`);\n```\n"
                                                "b <code>c</code>\n")
        self.assertEqual(self.translated("```sh\n# a\n```\n"), "```sh\n# a\n```\n")

    def test_lines_keep_their_numbers(self):
        for path in Contents(ROOT).pages:
            text = (ROOT / path).read_text()
            count = self.translated(text).count("\n") - text.count("\n") if "```cpp" not in text else 0
            self.assertEqual(count, 0, path)

    def test_a_page_of_many_sections_has_a_table_of_contents(self):
        sections = "".join(f"## S{number}\n\n" for number in range(4))
        self.assertIn("}\n[TOC]\nA stream", self.translated(f"# Streams\n\nA stream\n\n{sections}"))
        self.assertNotIn("[TOC]", self.translated("# Streams\n\nA stream\n\n## S\n"))


class SeeAlso(WebsiteTest):
    def test_names_the_pages_that_are_about_a_class(self):
        self.put("docs/usage/streams.md",
                 "# Streams\n\n`tcp_stream`, `tcp_stream::release`\n\n```cpp\ntcp_stream s;\n```\n")
        self.put("docs/usage/quick-start.md", "# Quickstart\n\n`run()` `run()` `run()` `run()` `tcp_stream` `task<>`\n")
        text = generated.see_also(Contents(self.root), self.names)
        self.assertIn('/** @class simplenet::tcp_stream\n * @see @ref usage_streams "Streams"\n */', text)
        self.assertIn('/** @class simplenet::task\n * @see @ref usage_quick_start "Quickstart"\n */', text)


class Finish(WebsiteTest):
    """What is mended in Doxygen's pages."""

    def finished(self, text, name="a.html"):
        self.put("doc/linked.txt", "")
        self.put(f"doc/html/{name}", text)
        finish(self.root, self.root / "doc")
        return (self.root / "doc" / "html" / name).read_text()

    def test_types_are_spelled_as_in_a_program(self):
        self.assertEqual(self.finished('<td class="memItemLeft">task&lt; result&lt; void &gt; &gt;</td>'),
                         '<td class="memItemLeft">task&lt;result&lt;&gt;&gt;</td>')
        self.assertEqual(self.finished("<p>a &lt; b</p>"), "<p>a &lt; b</p>")

    def test_a_long_type_may_break(self):
        self.assertEqual(self.finished(f'<td class="memItemLeft" align="right"><a>{"x" * 37}</a>&#160;</td>'),
                         f'<td class="memItemLeft long" align="right"><a>{"x" * 37}</a>&#160;</td>')

    def test_the_line_for_links_goes(self):
        line = ('<div class="line"><span class="keyword">using namespace </span><a href="x.html">simplenet</a>; '
                '<span class="comment">// for links</span></div>\n')
        self.assertEqual(self.finished(f'<div class="fragment">{line}<div class="line">a</div>'),
                         '<div class="fragment"><div class="line">a</div>')

    def test_a_place_in_a_file_is_no_link(self):
        self.assertEqual(self.finished('<a href="file:line">file:line</a>'), "file:line")

    def test_a_list_that_is_not_there_is_not_linked(self):
        self.assertEqual(self.finished('<a href="#pub">F</a> &#124;\n<a href="#nested-classes">C</a>'),
                         '<a href="#pub">F</a>')

    def test_the_navigation_has_no_namespace_and_finds_what_is_in_a_group(self):
        self.put("doc/html/group__net.html", '<a id="ga1"></a>')
        self.put("doc/html/net_8hpp.html", "")
        self.assertEqual(self.finished('[ "simplenet::run", "net_8hpp.html#ga1", null ]', "net_8hpp.js"),
                         '[ "run", "group__net.html#ga1", null ]')

    def test_pages_about_pages_go_and_the_search_forgets_them(self):
        self.put("doc/html/search/all_0.js", "['a',['../streams_8md.html',1,'']],\n['b',['../a.html',1,'']]\n")
        self.put("doc/html/streams_8md.html", "")
        self.finished("")
        self.assertFalse((self.root / "doc/html/streams_8md.html").exists())
        self.assertEqual((self.root / "doc/html/search/all_0.js").read_text(), "['b',['../a.html',1,'']]\n")

    def test_linked_files_are_added(self):
        self.put("LICENSE", "MIT")
        self.finished("")
        self.put("doc/linked.txt", "LICENSE\n")
        finish(self.root, self.root / "doc")
        self.assertEqual((self.root / "doc/html/LICENSE.txt").read_text(), "MIT")


@unittest.skipUnless(shutil.which("awk"), "awk is missing")
class Headers(unittest.TestCase):
    """docs/site/header.awk."""

    def filtered(self, text, path="include/simplenet/net/a.hpp"):
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return subprocess.run(["awk", "-f", ROOT / "docs/site/header.awk", file], capture_output=True, text=True,
                                  check=True).stdout

    def test_the_comment_on_top_is_about_the_file(self):
        self.assertEqual(self.filtered("#pragma once\n// tcp_stream: a connection.\n// Layer net.\n\n// else\n"),
                         "/// @file\n/// a connection.\n/// Layer net.\n\n// else\n")

    def test_names_lose_their_inline_namespaces_and_get_a_group(self):
        text = self.filtered("namespace simplenet::v0 {\ninline namespace runtime {\nint a;\n} // namespace runtime\n"
                             "} // namespace simplenet::v0\n")
        self.assertEqual(text.splitlines(), ["namespace simplenet { /** @addtogroup net */ /** @{ */", "", "int a;", "",
                                             "/** @} */ }"])

    def test_detail_gets_none(self):
        self.assertEqual(self.filtered("namespace simplenet::v0::detail {\n} // namespace simplenet::v0::detail\n"),
                         "namespace simplenet::detail {\n} // namespace simplenet::detail\n")

    def test_special_members_without_a_word_go(self):
        text = self.filtered("class a {\n    a(a&& other) noexcept\n        : b_{other.b_}\n        , c_{0} {}\n"
                             "    a& operator=(a&&) = delete;\n    ~a() {\n        end();\n    }\n"
                             "    ~a() { end(); } // x\n"
                             "    /// Said.\n    a(const a& other);\n    explicit a(int b);\n    friend class c;\n};\n")
        self.assertEqual(text.split(), "class a { /// Said. a(const a& other); explicit a(int b); };".split())

    def test_comments_behind_members_are_theirs(self):
        text = self.filtered("struct a {\n    int b = 1; // bytes\n               // at most\n    void c() {\n"
                             "        d(); // why\n    }\n};\nvoid e() {\n    f(); // why\n}\n")
        self.assertEqual(text.count("///<"), 2)
        self.assertIn("int b = 1; ///< bytes\n               ///< at most\n", text)

    def test_empty_brackets_stay_for_finish(self):
        self.assertEqual(self.filtered("result<> a();\n/// result<>\n"), "result<void> a();\n/// result<>\n")

    def test_addresses_are_no_names(self):
        self.assertEqual(self.filtered("/// On `::1`, say.\n"), "/// On <code>\\::1</code>, say.\n")


if __name__ == "__main__":
    unittest.main()
