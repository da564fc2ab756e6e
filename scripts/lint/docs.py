"""Checks that the code on user pages compiles, and that links work.

Every block of C++ in README.md and docs/usage/*.md has a comment before it,

    <!-- snippet: docs/snippets/errors.cpp compare -->

and equals, except for its indentation, the text between the two lines `//! [compare]` of that file.
The last column of a table after <!-- cells: FILE --> has code that occurs in FILE, with any line breaks.
The last column of a table after <!-- tests --> names tests of GoogleTest, as suite.test, or whole suites; they
must exist. A table after <!-- layers --> equals src/layers.txt.
Links of every page lead to an existing file and heading; a link whose text is the number of a decision leads to
that decision. --fix rewrites the blocks and the table of layers from the files.
"""

import re
import textwrap

from . import layers

BLOCK = re.compile(r"(?:^<!-- snippet: (?P<file>\S+) (?P<name>.+?) -->\n+)?"
                   r"^```cpp\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
CELLS = re.compile(r"^<!-- cells: (?P<file>\S+) -->\n+(?P<rows>(?:^\|.*\n)+)", re.MULTILINE)
TESTS = re.compile(r"^<!-- tests -->\n+(?P<rows>(?:^\|.*\n)+)", re.MULTILINE)
LAYERS = re.compile(r"^<!-- layers -->\n+(?P<rows>(?:^\|.*\n)+)", re.MULTILINE)
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!https?:)(?P<file>[^)#\s]*)(?:#(?P<heading>[^)\s]+))?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MARK = re.compile(r"^\s*//! \[.+\]\n", re.MULTILINE)


def region(file, name):
    """The text between the marks, without marks inside it; None if there is no such region."""
    if not file.is_file():
        return None
    parts = re.split(rf"^\s*//! \[{re.escape(name)}\]\n", file.read_text(), flags=re.M)
    if len(parts) != 3:
        return None
    return textwrap.dedent(MARK.sub("", parts[1])).strip("\n") + "\n"


def known_tests(root):
    """The names of all tests and of their suites."""
    names = set()
    for file in (root / "tests").rglob("*.cpp"):
        for suite, test in TEST.findall(file.read_text()):
            names |= {suite, f"{suite}.{test}"}
    return names


def check_code(root, page, fix):
    """Returns (complaints, number of pieces of code and names of tests)."""
    text = page.read_text()
    problems = []
    cells = 0

    def where(match):
        return f"{page.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"

    def visit(match):
        if not match["file"]:
            problems.append(f"{where(match)}: a block of C++ without <!-- snippet: FILE NAME -->")
            return match[0]
        wanted = region(root / match["file"], match["name"])
        if wanted is None:
            problems.append(f"{where(match)}: no //! [{match['name']}] twice in {match['file']}")
            return match[0]
        if match["code"] != wanted and not fix:
            problems.append(f"{where(match)}: differs from {match['file']} [{match['name']}]; "
                            "python3 scripts/lint docs --fix rewrites it")
        return match[0].replace(f"```cpp\n{match['code']}```", f"```cpp\n{wanted}```")

    fixed = BLOCK.sub(visit, text)
    if fix and fixed != text:
        page.write_text(fixed)
    for match in CELLS.finditer(text):
        source = root / match["file"]
        compiled = " ".join(source.read_text().split()) if source.is_file() else ""
        for row in match["rows"].splitlines()[2:]:
            for code in CODE.findall(row.rstrip("| ").rsplit(" | ", 1)[-1]):
                cells += 1
                if code not in compiled:
                    problems.append(f"{where(match)}: `{code}` is not in {match['file']}")
    for match in TESTS.finditer(text):
        known = known_tests(root)
        for row in match["rows"].splitlines()[2:]:
            for name in CODE.findall(row.rstrip("| ").rsplit(" | ", 1)[-1]):
                cells += 1
                if name not in known:
                    problems.append(f"{where(match)}: there is no test {name}")
    return problems, len(BLOCK.findall(text)) + cells


def check_layers(root, page, fix):
    """Returns (complaints, number of tables of layers)."""
    text = page.read_text()
    if not LAYERS.search(text):
        return [], 0
    rows = ["| layer | may include | what it is |", "|---|---|---|"]
    for name, layer in layers.read_table(root).layers.items():
        may = " ".join(f"`{each}`" if each[0] != "(" else f"(`{each[1:-1]}`)" for each in layer.text.split())
        rows.append(f"| `{name}` | {may} | {layer.what} |".replace("|  |", "| |"))
    fixed = LAYERS.sub(lambda match: match[0].replace(match["rows"], "\n".join(rows) + "\n"), text)
    if fixed == text:
        return [], 1
    if fix:
        page.write_text(fixed)
        return [], 1
    return [f"{page.relative_to(root)}: its table of layers differs from src/layers.txt; "
            "python3 scripts/lint docs --fix rewrites it"], 1


def without_code(text):
    """The same text, with empty lines in place of code blocks."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def anchor(heading):
    """The anchor of a heading: in lower case, with dashes for blanks."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-")


def anchors(page):
    """The anchors of a page."""
    return {anchor(each) for each in HEADING.findall(without_code(page.read_text()))}


def check_links(root, page):
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
            problems.append(f"{page.relative_to(root)}:{line}: {wrong}")
    return problems, count


def check(root, fix=False):
    linked = sorted({*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "planning").glob("*.md")})
    with_code = {root / "README.md", root / "docs" / "development" / "promises.md",
                 *(root / "docs" / "usage").glob("*.md")}
    complaints = []
    pieces = links = tables = 0
    for page in linked:
        if page in with_code:
            found, count = check_code(root, page, fix)
            complaints += found
            pieces += count
        found, count = check_layers(root, page, fix)
        complaints += found
        tables += count
        found, count = check_links(root, page)
        complaints += found
        links += count
    if not tables:
        complaints.append("no page contains the table of layers")
    return complaints, f"{len(linked)} pages, {pieces} pieces of C++ and names of tests, {links} links"
