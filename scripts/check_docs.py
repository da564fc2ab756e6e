#!/usr/bin/env python3
"""Holds the pages for users to code that compiles.

Every block of C++ in README.md and docs/usage/*.md has a comment before it,

    <!-- snippet: docs/snippets/errors.cpp compare -->

and says, but for its indentation, what stands between the two lines `//! [compare]` of that file.
A table after <!-- cells: FILE --> has in its last column code that stands in FILE, whatever its
line breaks.
A table after <!-- tests --> names tests of GoogleTest in its last column, as suite.test, or whole
suites: they exist.
Links of every page of this tree lead to a file and a heading that exist; one that is called by the
number of a decision leads to that one. With --fix the blocks are rewritten from the files.
"""

import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "usage").glob("*.md")),
         ROOT / "docs" / "development" / "promises.md"]
LINKED = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "planning").glob("*.md")})

BLOCK = re.compile(r"(?:^<!-- snippet: (?P<file>\S+) (?P<name>.+?) -->\n+)?"
                   r"^```cpp\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
CELLS = re.compile(r"^<!-- cells: (?P<file>\S+) -->\n+(?P<rows>(?:^\|.*\n)+)", re.MULTILINE)
TESTS = re.compile(r"^<!-- tests -->\n+(?P<rows>(?:^\|.*\n)+)", re.MULTILINE)
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!https?:)(?P<file>[^)#\s]*)(?:#(?P<heading>[^)\s]+))?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MARK = re.compile(r"^\s*//! \[.+\]\n", re.MULTILINE)


def region(file, name):
    """The text between the marks, without marks inside it; None if there is no such region."""
    if not (ROOT / file).is_file():
        return None
    parts = re.split(rf"^\s*//! \[{re.escape(name)}\]\n", (ROOT / file).read_text(), flags=re.M)
    if len(parts) != 3:
        return None
    return textwrap.dedent(MARK.sub("", parts[1])).strip("\n") + "\n"


def known_tests():
    """The names of all tests, and of their suites."""
    names = set()
    for file in (ROOT / "tests").rglob("*.cpp"):
        for suite, test in TEST.findall(file.read_text()):
            names |= {suite, f"{suite}.{test}"}
    return names


def check(page, fix):
    text = page.read_text()
    problems = []
    cells = 0

    def where(match):
        return f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"

    def visit(match):
        if not match["file"]:
            problems.append(f"{where(match)}: a block of C++ without <!-- snippet: FILE NAME -->")
            return match[0]
        wanted = region(match["file"], match["name"])
        if wanted is None:
            problems.append(f"{where(match)}: no //! [{match['name']}] twice in {match['file']}")
            return match[0]
        if match["code"] != wanted and not fix:
            problems.append(f"{where(match)}: differs from {match['file']} [{match['name']}]; "
                            "scripts/check_docs.py --fix rewrites it")
        return match[0].replace(f"```cpp\n{match['code']}```", f"```cpp\n{wanted}```")

    fixed = BLOCK.sub(visit, text)
    if fix and fixed != text:
        page.write_text(fixed)
        print(f"rewrote blocks of {page.relative_to(ROOT)}")
    for match in CELLS.finditer(text):
        source = ROOT / match["file"]
        compiled = " ".join(source.read_text().split()) if source.is_file() else ""
        for row in match["rows"].splitlines()[2:]:
            for code in CODE.findall(row.rstrip("| ").rsplit(" | ", 1)[-1]):
                cells += 1
                if code not in compiled:
                    problems.append(f"{where(match)}: `{code}` is not in {match['file']}")
    for match in TESTS.finditer(text):
        known = known_tests()
        for row in match["rows"].splitlines()[2:]:
            for name in CODE.findall(row.rstrip("| ").rsplit(" | ", 1)[-1]):
                cells += 1
                if name not in known:
                    problems.append(f"{where(match)}: there is no test {name}")
    return problems, len(BLOCK.findall(text)) + cells


def without_code(text):
    """The same lines, those of blocks of code empty."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def anchors(page):
    """What a link can name in a page: its headings, in lower case with dashes for blanks."""
    words = HEADING.findall(without_code(page.read_text()))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in words)
    return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in plain}


def check_links(page):
    text = without_code(page.read_text())
    problems = []
    count = 0
    for match in LINK.finditer(text):
        count += 1
        line = text.count("\n", 0, match.start()) + 1
        target = page.parent / match["file"] if match["file"] else page
        wrong = None
        if not target.exists():
            wrong = f"the link to {match['file']} leads nowhere"
        elif match["heading"] and match["heading"] not in anchors(target):
            wrong = f"{target.name} has no heading #{match['heading']}"
        elif re.fullmatch(r"\d{4}", match["text"]) and not target.name.startswith(match["text"]):
            wrong = f"[{match['text']}] leads to {target.name}"
        if wrong:
            problems.append(f"{page.relative_to(ROOT)}:{line}: {wrong}")
    return problems, count


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="rewrite blocks that differ")
    fix = parser.parse_args().fix

    problems = []
    blocks = 0
    for page in PAGES:
        found, count = check(page, fix)
        problems += found
        blocks += count
    links = 0
    for page in LINKED:
        found, count = check_links(page)
        problems += found
        links += count
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(LINKED)} pages, {blocks} pieces of C++ and names of tests, {links} links, "
          f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
