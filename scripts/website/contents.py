"""The pages of the site, and their order.

The tables of docs/README.md are the table of contents; the decisions are those of their own table.
"""

import dataclasses
import pathlib
import re

from lint import docs

MAIN = pathlib.PurePath("README.md")
CONTENTS = pathlib.PurePath("docs/README.md")
DECISIONS = pathlib.PurePath("docs/development/decisions/README.md")
CHAPTER = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!## ).*\n)*)", re.MULTILINE)
ROW = re.compile(r"^\|.*\|$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Page:
    path: pathlib.PurePath  # in the tree
    title: str

    @property
    def label(self):
        """Doxygen's name for the page; its file is LABEL.html."""
        if self.path == MAIN:
            return "mainpage"
        words = "_".join(self.path.with_suffix("").parts[-2:])
        return re.sub(r"\W", "_", words).lower()

    @property
    def tab(self):
        """The name in the navigation, whose lines are short."""
        if re.match(r"\d{4}-", self.path.name):
            return self.path.stem.replace("-", " ")
        return self.title.partition(": ")[0]

    @property
    def file(self):
        return "index.html" if self.path == MAIN else f"{self.label}.html"

    def anchor(self, heading):
        return f"{self.label}__{heading}"


@dataclasses.dataclass(frozen=True)
class Chapter:
    title: str
    pages: list


class Contents:
    """The pages of a tree: chapters in order, and all pages by path."""

    def __init__(self, root):
        self.root = root
        self.main = self.page(MAIN)
        self.overview = self.page(CONTENTS)
        self.chapters = [Chapter(match["title"], self.linked(CONTENTS, match["text"]))
                         for match in CHAPTER.finditer((root / CONTENTS).read_text())]
        self.decisions = self.page(DECISIONS)
        listed = self.linked(DECISIONS, (root / DECISIONS).read_text())
        self.chapters.append(Chapter(self.decisions.title, [self.decisions, *listed]))
        for chapter in self.chapters[:-1]:
            if self.decisions in chapter.pages:
                chapter.pages.remove(self.decisions)
        pages = [self.main, self.overview, *(page for each in self.chapters for page in each.pages)]
        self.pages = {page.path: page for page in pages}

    def page(self, path):
        return Page(path, plain(re.search(r"^# (.+)$", (self.root / path).read_text(), re.MULTILINE)[1]))

    def linked(self, page, text):
        """The pages that the tables of `text` link to, each once."""
        found = []
        for row in ROW.findall(text):
            for link in docs.LINK.finditer(row):
                path = resolve(page, link["file"])
                if path.suffix == ".md" and self.page(path) not in found:
                    found.append(self.page(path))
        return found

    def complaints(self):
        """The pages of docs/ that are in no table, so that no reader would find them."""
        written = (path.relative_to(self.root) for path in (self.root / "docs").rglob("*.md"))
        return [f"{path}: no table of {CONTENTS} or {DECISIONS} links to it"
                for path in sorted(written) if path not in self.pages and "site" not in path.parts]


def resolve(page, link):
    """The target of a relative link of a page, from the root of the tree; for a folder its README.md."""
    parts = []
    for part in (page.parent / link).parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return pathlib.PurePath(*parts)


def plain(text):
    """`text` without the marks of Markdown."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*", "")
