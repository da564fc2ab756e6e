"""Writes the files that Doxygen reads beside the headers."""

import shutil
import sys

from . import generated
from .contents import Contents
from .markdown import Translation
from .names import Names


def prepare(root, into, names, doxygen):
    """Writes pages, navigation and header into a folder. `names` is the tag file of a run over the headers alone."""
    contents = Contents(root)
    complaints = contents.complaints()
    if complaints:
        sys.exit("\n".join(complaints))
    known = Names.of(names)
    examples = generated.examples(root)
    pages = into / "pages"
    linked = set()
    for page in contents.pages.values():
        translation = Translation(contents, known, page, linked)
        write(pages / f"{page.label}.md", translation.whole((root / page.path).read_text()))
    write(pages / "examples_list.md", generated.page_of_examples(examples))
    write(pages / "examples.dox", "".join(f"/** @example {each.name} */\n" for each in examples))
    write(pages / "see_also.dox", generated.see_also(contents, known))
    # A copy; otherwise its folder would be among the headers.
    shutil.copyfile(root / "docs" / "site" / "layers.dox", pages / "layers.dox")
    # Since 1.9.8 Doxygen calls its groups topics.
    groups = "topics" if tuple(map(int, doxygen.split(".")[:3])) >= (1, 9, 8) else "modules"
    layout = (root / "docs" / "site" / "layout.xml").read_text()
    write(into / "layout.xml", generated.layout(layout, contents, examples, groups))
    write(into / "header.html", generated.header((into / "header.html").read_text()))
    write(into / "linked.txt", "".join(f"{path}\n" for path in sorted(linked)))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
