"""Translates a page for Doxygen, whose Markdown differs from GitHub's: headings have no anchors of their own, a link
to one leads nowhere, and in code `\\n` and `@pre` are commands. Lines keep their numbers.
"""

import html
import re

from lint import docs

from .contents import plain, resolve

FENCE = re.compile(r"^(?P<fence>```+)(?P<language>\w*)\n(?P<code>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^(?P<level>#+) (?P<text>.+)$", re.MULTILINE)
CODE = r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)"
STRONG = r"\*\*(?P<strong>(?! )(?:(?!\*\*|\n\n).)+)\*\*"
EMPHASIS = r"(?<![\w*/])\*(?P<emphasis>(?![\s*])(?:(?!\n\n)[^*])+)\*(?![\w*])"
LINK = r"(?P<image>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<url>[^()\s]*)\)"
INLINE = re.compile(f"{CODE}|{STRONG}|{EMPHASIS}|{LINK}", re.DOTALL)
# A page with that many sections has a table of contents.
SECTIONS = 4
# Makes Doxygen link the names in a block of code. finish() removes it.
USING = "using namespace simplenet; // for links"


class Translation:
    """The translation of one page. `files` collects linked files that are not part of the site."""

    def __init__(self, contents, names, page, files):
        self.contents = contents
        self.names = names
        self.page = page
        self.files = files

    def whole(self, text):
        """The text of the page for Doxygen."""
        parts, end = [], 0
        text = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
        for fence in FENCE.finditer(text):
            before, code = self.prose(text[end:fence.start()]), block(fence)
            if code != fence[0]:
                before = re.sub(r"\n\n\n\Z", "\n\n", before)  # makes up for the added line
            parts += [before, code]
            end = fence.end()
        whole = "".join([*parts, self.prose(text[end:])])
        sections = len(re.findall(r"^## .*\{#", whole, re.MULTILINE))
        return re.sub(r"\A(# .+\n)\n", r"\1[TOC]\n", whole) if sections >= SECTIONS else whole

    def prose(self, text):
        lines = []
        for part in re.split(r"^(#+ .+\n)", text, flags=re.MULTILINE):
            heading = HEADING.match(part)
            lines.append(self.heading(heading) if heading else INLINE.sub(self.inline, part))
        return "".join(lines)

    def heading(self, match):
        text = plain(match["text"])
        if match["level"] == "#" and text == self.page.title:
            return f"# {text} {{#{self.page.label}}}\n"
        label = self.page.anchor(docs.anchor(match["text"]))
        if self.page.label == "mainpage":
            # Not a section, which Doxygen would put into the navigation, before everything else.
            return f'<h1><a class="anchor" id="{label}"></a>{text}</h1>\n'
        return f"{match['level']} {text} {{#{label}}}\n"

    def inline(self, match):
        if match["code"] is not None:
            return self.code(match)
        if match["strong"]:
            return f"<b>{INLINE.sub(self.inline, match['strong'])}</b>"
        if match["emphasis"]:
            return f"<em>{INLINE.sub(self.inline, match['emphasis'])}</em>"
        if match["image"]:
            return f"![{match['text']}]({match['url'].rpartition('/')[2]})"
        text = re.sub(CODE, lambda code: verbatim(code["code"]), match["text"])
        return f'<a href="{self.target(match["url"])}">{text}</a>'

    def code(self, match):
        name = self.names.meant_by(match["code"])
        if name:
            return f'<code>@ref {name} "{html.escape(match["code"])}"</code>'
        return verbatim(match["code"])

    def target(self, url):
        """The target in the site of a link of this page."""
        if re.match(r"\w+:", url):
            return url
        file, _, heading = url.partition("#")
        path = resolve(self.page.path, file) if file else self.page.path
        page = self.contents.pages.get(path) or self.contents.pages.get(path / "README.md")
        if page:
            return page.file + (f"#{page.anchor(heading)}" if heading else "")
        if path.parts[0] == "examples":
            return example_file(path.name) if path.suffix else "examples_list.html"
        self.files.add(path)
        return path.name + ("" if path.suffix else ".txt")


def verbatim(code):
    """A piece of code in which nothing is a command, an entity or a name to be linked."""
    # As an entity: Doxygen ignores escapes between quotes.
    text = html.escape(code.replace("\\|", "|"), quote=False).replace('"', "&quot;")
    text = re.sub(r"([\\@#%|*_$]|::|--)", r"\\\1", text)
    # Otherwise `ctx.run()` of another library would link to our run().
    return "<code>" + re.sub(r"(?<![\w.:\\])(?=[A-Za-z][\w.:\\]*\()", "%", text) + "</code>"


def block(fence):
    """A block of code. The names in C++ become links where Doxygen knows their namespace."""
    if fence["language"] != "cpp" or "using namespace simplenet;" in fence["code"]:
        return fence[0]
    return f"{fence['fence']}cpp\n{USING}\n{fence['code']}{fence['fence']}"


def example_file(name):
    """Doxygen's name for the page of an example."""
    return name.replace(".", "_8") + "-example.html"
