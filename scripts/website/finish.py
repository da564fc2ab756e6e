"""Corrects Doxygen's pages where they differ from what readers expect."""

import html
import pathlib
import re
import shutil

from .markdown import USING

# The line of USING as Doxygen writes it.
LINE = re.compile(rf'(?<=<div class="fragment">)<div class="line">(?:<[^>]*>|[^<\n])*?'
                  rf'{re.escape(USING.partition(";")[2].strip())}(?:<[^>]*>)*?</div>\n')
# A declaration on the page of a class or a group, with the spelling of its types.
DECLARATION = re.compile(r'<td class="(?:memItem|memname|memTempl|paramtype|paramname)[^\n]*')
SPELLINGS = (("&lt; void &gt;", "&lt;&gt;"), ("&lt; ", "&lt;"), (" &gt;", "&gt;"))
# The cell to the left of a name: a long one may break.
TYPE = re.compile(r'<td class="memItemLeft"([^>]*)>(.*?)</td>')
LONGEST = 36
# Readers need not know that a function is inline.
INLINE = re.compile(r'<span class="mlabel(?: \w+)?">inline</span>')
# `file:line` is not an address.
FILE = re.compile(r'<a href="file:[^"]*">([^<]*)</a>')
# A class that has only private classes has no list of them.
CLASSES = re.compile(r'(?: &#124;\n)?<a href="#nested-classes">[^<]*</a>')
# Doxygen's pages about the sources of the site's pages.
ABOUT_FILES = re.compile(r"_8(?:md|dox)\.html$")
# An address in the site, in the data of its navigation and its search.
ADDRESS = re.compile(r"""["'](?:\.\./)?([\w-]+\.html)(?:#(\w+))?["']""")


def finish(root, into):
    """Corrects the pages of the site, and adds the files of the tree that they link to."""
    site = into / "html"
    homes = {}  # anchor: the pages that have it
    for file in sorted(site.glob("*.html")):
        if ABOUT_FILES.search(file.name):
            file.unlink()
            continue
        text = mended(file.read_text())
        file.write_text(text)
        for anchor in re.findall(r'(?:id|name)="(\w+)"', text):
            homes.setdefault(anchor, []).append(file.name)
    for file in [*site.glob("*.js"), *(site / "search").glob("*.js")]:
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(redirected(line, site, homes) for line in lines))
    for path in map(pathlib.PurePath, (into / "linked.txt").read_text().split()):
        shutil.copyfile(root / path, site / (path.name + ("" if path.suffix else ".txt")))


def mended(page):
    page = TYPE.sub(measured, DECLARATION.sub(spelled, LINE.sub("", page)))
    page = FILE.sub(r"\1", INLINE.sub("", page))
    return page if 'name="nested-classes"' in page else CLASSES.sub("", page)


def spelled(declaration):
    """The declaration spelled as in a program: `task<result<>>`."""
    text = declaration[0]
    for written, meant in SPELLINGS:
        text = text.replace(written, meant)
    return text


def measured(cell):
    length = len(html.unescape(re.sub(r"<[^>]*>", "", cell[2])).strip())
    return f'<td class="memItemLeft long"{cell[1]}>{cell[2]}</td>' if length > LONGEST else cell[0]


def redirected(line, site, homes):
    """A line of the navigation or the search, with removed targets dropped and each anchor on its page."""
    for page, anchor in ADDRESS.findall(line):
        if not (site / page).exists():
            return ""
        if anchor and page not in homes.get(anchor, [page]):
            line = line.replace(f"{page}#{anchor}", f"{homes[anchor][0]}#{anchor}")
    return line.replace('[ "simplenet::', '[ "')
