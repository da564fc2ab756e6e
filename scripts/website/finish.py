"""What Doxygen writes differently from what readers expect, mended in its pages."""

import html
import pathlib
import re
import shutil

from .markdown import USING

# The line of USING as Doxygen writes it.
LINE = re.compile(rf'(?<=<div class="fragment">)<div class="line">(?:<[^>]*>|[^<\n])*?'
                  rf'{re.escape(USING.partition(";")[2].strip())}(?:<[^>]*>)*?</div>\n')
# A declaration on the page of a class or a group, and how its types are spelled.
DECLARATION = re.compile(r'<td class="(?:memItem|memname|memTempl|paramtype|paramname)[^\n]*')
SPELLINGS = (("&lt; void &gt;", "&lt;&gt;"), ("&lt; ", "&lt;"), (" &gt;", "&gt;"))
# What stands left of a name: one that is longer may break.
TYPE = re.compile(r'<td class="memItemLeft"([^>]*)>(.*?)</td>')
LONGEST = 36
# That a function is inline is nobody's business.
INLINE = re.compile(r'<span class="mlabel(?: \w+)?">inline</span>')
# `file:line` is no address.
FILE = re.compile(r'<a href="file:[^"]*">([^<]*)</a>')
# A class that has only private classes has no list of them.
CLASSES = re.compile(r'(?: &#124;\n)?<a href="#nested-classes">[^<]*</a>')
# Pages about the files that the site's pages were made of.
ABOUT_FILES = re.compile(r"_8(?:md|dox)\.html$")
# A place in the site, in the data of its navigation and its search.
ADDRESS = re.compile(r"""["'](?:\.\./)?([\w-]+\.html)(?:#(\w+))?["']""")


def finish(root, into):
    """Mends the pages of the site, and adds the files of the tree that they link to."""
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
    """As in a program: `task<result<>>`."""
    text = declaration[0]
    for written, meant in SPELLINGS:
        text = text.replace(written, meant)
    return text


def measured(cell):
    length = len(html.unescape(re.sub(r"<[^>]*>", "", cell[2])).strip())
    return f'<td class="memItemLeft long"{cell[1]}>{cell[2]}</td>' if length > LONGEST else cell[0]


def redirected(line, site, homes):
    """A line of the navigation or the search: without what is gone, and to the page that has the anchor."""
    for page, anchor in ADDRESS.findall(line):
        if not (site / page).exists():
            return ""
        if anchor and page not in homes.get(anchor, [page]):
            line = line.replace(f"{page}#{anchor}", f"{homes[anchor][0]}#{anchor}")
    return line.replace('[ "simplenet::', '[ "')
