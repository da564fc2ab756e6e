"""scripts/lint site: what it says about pages as Doxygen writes them."""

import pathlib
import tempfile
import unittest

from lint import site

FUNCTION = """\
<a id="a1"></a>
<h2 class="memtitle"><span class="permalink"><a href="#a1">&#9670;&nbsp;</a></span>{name}()</h2>
<div class="memitem"><div class="memproto"><table class="memname"><tr><td class="memname">int {scope}{name} </td>
<td>(</td><td class="paramtype">{parameters}</td><td>)</td></tr></table></div>
<div class="memdoc">{about}</div></div>
"""


def page(contents, title="Streams"):
    return f"""<html><head><title>x: {title}</title></head><body><a id="top"></a>
<div class="header"><div class="headertitle"><div class="title">{title}</div></div></div>
<div class="contents"><div class="textblock">{contents}</div></div></body></html>"""


def function(name="first", about="", parameters="std::size_t n", scope="simplenet::buffer::"):
    return FUNCTION.format(name=name, about=about, parameters=parameters, scope=scope)


class SiteTest(unittest.TestCase):
    """A site of the files that a test writes."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        self.put("index.html", page("<p>Hello.</p>"))

    def put(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def complaints(self):
        return site.check(self.folder, self.folder)[0]

    def assert_complains(self, *parts):
        found = self.complaints()
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])


class Links(SiteTest):
    def test_lead_to_pages_anchors_and_files(self):
        self.put("LICENSE.txt", "")
        self.put("a.html", page('<a href="index.html#top">i</a> <a href="#top">t</a> <a href="LICENSE.txt">l</a> '
                                '<a href="https://example.org/x">e</a>'))
        self.assertEqual(self.complaints(), [])

    def test_to_a_missing_page(self):
        self.put("a.html", page('<p>Text.</p>\n<a href="gone.html">g</a>'))
        self.assert_complains("a.html:4:", "gone.html leads nowhere")

    def test_to_a_missing_anchor(self):
        self.put("a.html", page('<a href="index.html#gone">g</a>'))
        self.assert_complains("index.html has no anchor #gone")

    def test_to_a_missing_image(self):
        self.put("a.html", page('<img src="gone.svg"/>'))
        self.assert_complains("gone.svg leads nowhere")

    def test_of_the_navigation_and_the_search(self):
        self.put("navtreedata.js", '[ "Streams", "gone.html", null ]')
        self.put("search/all_0.js", "['x',['../index.html#gone',1,'']]")
        self.assertEqual([each.partition(",")[0] for each in self.complaints()],
                         ["navtreedata.js: leads to gone.html", "search/all_0.js: leads to index.html#gone"])

    def test_a_folder_without_a_site(self):
        (self.folder / "index.html").unlink()
        self.assert_complains("no index.html")


class Texts(SiteTest):
    def test_tags_commands_and_marks_are_reported(self):
        for text in ("a &lt;br&gt; b", "a &lt;/td&gt;", "@pre x", "a \\n b", "a **b**", "*a b.* c", "a `b`",
                     "| a | b |", "x](y)", "# T {#t}"):
            with self.subTest(text):
                self.put("a.html", page(f"<p>{text}</p>"))
                self.assert_complains("a.html:3:", "in the text")

    def test_in_code_they_are_intended(self):
        self.put("a.html", page("<p><code>@pre</code> <code>'\\n'</code> <code>a | b</code></p><pre>**</pre>"
                                '<div class="fragment">`</div>'))
        self.assertEqual(self.complaints(), [])

    def test_what_a_broken_table_leaves_in_code(self):
        self.put("a.html", page("<p><code>\\ilinebr &lt;/td&gt; &lt;/tr&gt;</code></p>"))
        self.assert_complains("ilinebr in code")

    def test_types_and_mail_are_no_tags(self):
        self.put("a.html", page("<p>a task&lt;T&gt;, me@example.org</p>"))
        self.assertEqual(self.complaints(), [])


class Declarations(SiteTest):
    def put_class(self, name, contents, title="simplenet::buffer Class Reference"):
        self.put(name, page(f"<p>What it is.</p>{contents}", title))

    def test_a_page_of_an_internal_class(self):
        self.put_class("classsimplenet_1_1detail_1_1operation.html", "")
        self.assert_complains("a name that programs do not use")

    def test_the_namespace_of_an_abi(self):
        self.put_class("classsimplenet_1_1buffer.html", "", "simplenet::v0::buffer Class Reference")
        self.assertIn("v0:: in a declaration", " ".join(self.complaints()))

    def test_a_page_may_speak_of_it(self):
        self.put("decisions.html", page("<p>Linkers say v0::.</p>"))
        self.assertEqual(self.complaints(), [])

    def test_a_class_without_a_sentence(self):
        self.put("classsimplenet_1_1buffer.html", page("", "simplenet::buffer Class Reference"))
        self.assert_complains("no sentence that describes it")

    def test_additions_are_not_a_description(self):
        added = '<dl class="section see"><dt>See also</dt><dd>Streams</dd></dl>'
        self.put("classsimplenet_1_1buffer.html", page(f"<p><code>#include &lt;a.hpp&gt;</code></p>{added}"))
        self.assert_complains("no sentence that describes it")

    def test_a_function_without_one(self):
        self.put_class("classsimplenet_1_1buffer.html", function())
        self.assert_complains("first() without a sentence")
        self.put_class("classsimplenet_1_1buffer.html", function(about="<p>The first of them.</p>"))
        self.assertEqual(self.complaints(), [])

    def test_a_precondition_is_one(self):
        self.put_class("classsimplenet_1_1buffer.html", function(about='<dl class="section pre"><dt>Precondition</dt>'
                                                                       "<dd><code>n &lt; 2</code></dd></dl>"))
        self.assertEqual(self.complaints(), [])

    def test_one_overload_speaks_for_all(self):
        self.put_class("classsimplenet_1_1buffer.html", function() + function(about="<p>The first of them.</p>"))
        self.assertEqual(self.complaints(), [])

    def test_a_name_that_says_enough_needs_none(self):
        for each in (function("size", parameters=""), function("buffer"), function("operator=="),
                     function("buffer", scope="template&lt;class T&gt; simplenet::buffer&lt;T&gt;::"),
                     function("operator&lt;=&gt;")):
            self.put_class("classsimplenet_1_1buffer.html", each)
            self.assertEqual(self.complaints(), [])

    def test_outside_of_a_class_every_function_needs_one(self):
        self.put("group__net.html", page("<p>Sockets.</p>" + function("poll", parameters="", scope="simplenet::")))
        self.assert_complains("poll() without a sentence")

    def test_lists_are_no_declarations(self):
        self.put("classes.html", page("", "Class Index"))
        self.put("classsimplenet_1_1buffer-members.html", page("", "Member List"))
        self.assertEqual(self.complaints(), [])


if __name__ == "__main__":
    unittest.main()
