"""Checks the site that the target `doc` made.

Every link, including those of the navigation and the search, leads to a page, an anchor or a file of the site, or
elsewhere on the web. No text contains a tag, a Doxygen command or a mark of Markdown that was not translated. No page
is about a name of `detail` or an awaitable that programs do not name, and no declaration shows namespaces that programs
do not write. The page of every class, concept, namespace, group and header describes its subject. So does every
function outside of classes, and every member with parameters, unless an overload of it does.
"""

import collections
import html.parser
import pathlib
import re
import urllib.parse

# Pages of the reference: those about declarations.
DECLARED = re.compile(r"(?:class|struct|union|concept|namespace|group__)(?!e?s\.html)(?!.*-members\.html)|"
                      r".*_8hpp\.html")
INTERNAL = re.compile(r"\bv\d+::|\bruntime::")
INTERNAL_FILE = re.compile(r"1_1detail|_2detail|1_1v\d+|1_1runtime|__operation")
TAG = re.compile(r"</?(?:a|b|br|code|dd|dl|dt|em|h\d|hr|i|img|li|ol|p|pre|span|strong|su[bp]|t[dhrt]|table|ul)"
                 r"(?: [^>]*)?/?>")
COMMAND = re.compile(r"[@\\](?:n|ilinebr|p|par|t?param|pre|post|returns?|ref|see|snippet|throws|brief|file|"
                     r"(?:end)?code)\b")
MARKDOWN = re.compile(r"\*\*|(?<=\S)\*(?=\s|$)|^\*|`|\]\(|^\||\{#")
# The addresses in Doxygen's own data.
ADDRESS = re.compile(r"""["'](?:\.\./)?([\w-]+\.html)(?:#(\w+))?["']""")
# Elements without an end.
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "param", "source", "wbr"}
SENTENCE = re.compile(r"\w")


class Page(html.parser.HTMLParser):
    """The parts of a page that the checks need: links and anchors, texts by kind, declarations."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []         # (line, address)
        self.prose = []         # (line, text) of what people read, code aside
        self.code = []          # (line, text) of code within a sentence
        self.declared = []      # (line, text) of headings and declarations
        self.description = ""   # of the page, before it lists anything
        self.members = []       # (line, heading, declaration, documentation)
        self.open = []          # the elements around: (tag, their classes and "<tag>")
        self.listing = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        kinds = set((attributes.get("class") or "").split()) | {f"<{tag}>"}
        line = self.getpos()[0]
        self.anchors |= {attributes[each] for each in ("id", "name") if attributes.get(each)}
        for each in ("href", "src", "data"):
            if attributes.get(each):
                self.links.append((line, attributes[each]))
        if kinds & {"memberdecls", "directory", "memtitle"}:
            self.listing = True
        if "memtitle" in kinds:
            self.members.append([line, "", "", ""])
        if tag not in VOID:
            self.open.append((tag, kinds))

    def handle_endtag(self, tag):
        while any(tag == name for name, _ in self.open):
            if self.open.pop()[0] == tag:
                break

    def inside(self, *wanted):
        return any(kinds & set(wanted) for _, kinds in self.open)

    def handle_data(self, data):
        line = self.getpos()[0]
        if self.inside("<script>", "<style>", "<pre>", "ttc", "fragment"):
            return
        if self.inside("<title>", "headertitle", "memItemLeft", "memItemRight", "memTemplParams", "memproto", "memtitle"):
            self.declared.append((line, data))
            if self.members and self.inside("memtitle"):
                self.members[-1][1] += data
            if self.members and self.inside("memproto"):
                self.members[-1][2] += data
        elif self.inside("contents"):
            (self.code if self.inside("<code>") else self.prose).append((line, data))
            if self.members and self.inside("memdoc"):
                self.members[-1][3] += data
            # The additions of Doxygen and scripts/website are not a description.
            added = self.inside("groupheader", "dynheader", "see", "examples") or data.startswith("#include")
            if not self.listing and not added:
                self.description += data


def bad_links(name, page, pages, files):
    for line, link in page.links:
        address, _, anchor = urllib.parse.unquote(link).partition("#")
        if re.match(r"(?:https?|mailto|javascript|data):", address):
            continue
        target = address or name
        if target not in files:
            yield line, f"the link to {link} leads nowhere"
        elif anchor and target in pages and anchor not in pages[target].anchors:
            yield line, f"{target} has no anchor #{anchor}"


def bad_text(page):
    for line, text in page.prose:
        if text.strip() == "operator*":
            continue  # the name of a member
        for pattern in (TAG, COMMAND, MARKDOWN):
            match = pattern.search(text.strip())
            if match:
                yield line, f"{match[0]} in the text: {text.strip()[:60]}"
    for line, text in page.code:
        match = re.search(r"ilinebr|</?(?:td|tr|table|code)>", text)
        if match:
            yield line, f"{match[0]} in code: {text.strip()[:60]}"


def internals(name, page):
    if INTERNAL_FILE.search(name):
        yield 1, "a page about a name that programs do not use"
    elif DECLARED.match(name):
        for line, text in page.declared:
            match = INTERNAL.search(text)
            if match:
                yield line, f"{match[0]} in a declaration: {text.strip()[:60]}"


def needs_sentence(name, declaration):
    """Whether a declaration needs a sentence: not operators, deduction guides, data, or members without parameters."""
    plain = " ".join(declaration.split())
    while re.search(r"<[^<>]*>", plain):
        plain = re.sub(r"<[^<>]*>", "", plain)
    function = re.search(r"([\w:~]+)\s*\(\s*(\)?)", plain)
    if not function or "operator" in declaration or "friend" in declaration or "->" in declaration:
        return False
    called, nothing = function.groups()
    parts = called.split("::")
    if name.startswith("group__") or name.startswith("namespace"):
        return True
    return not nothing and (len(parts) < 2 or parts[-1] != parts[-2])


def silent(name, page):
    if not DECLARED.match(name):
        return
    if not SENTENCE.search(page.description):
        yield 1, "no sentence that describes it"
    overloads = collections.defaultdict(list)
    for line, heading, declaration, documentation in page.members:
        called = re.sub(r"\[\d+/\d+\]|[^\w~ =<>+-]", "", heading).strip()
        overloads[called].append((line, declaration, documentation))
    for called, all_of_it in overloads.items():
        if not any(SENTENCE.search(documentation) for _, _, documentation in all_of_it):
            line, declaration, _ = all_of_it[0]
            if needs_sentence(name, declaration):
                yield line, f"{called}() without a sentence"


def bad_data(text, pages):
    for address, anchor in set(ADDRESS.findall(text)):
        if address not in pages:
            yield 1, f"leads to {address}, which does not exist"
        elif anchor and anchor not in pages[address].anchors:
            yield 1, f"leads to {address}#{anchor}, which does not exist"


def check(root, site):  # pylint: disable=unused-argument
    folder = pathlib.Path(site)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    pages = {name: Page((folder / name).read_text()) for name in sorted(files)
             if name.endswith(".html") and not name.startswith("search/")}
    complaints = [] if "index.html" in pages else [f"{site}: no index.html"]
    links = 0
    for name, page in pages.items():
        links += len(page.links)
        found = [*bad_links(name, page, pages, files), *bad_text(page), *internals(name, page), *silent(name, page)]
        complaints += [f"{name}:{line}: {what}" for line, what in sorted(found)]
    for name in sorted(files):
        if re.match(r"(?:search/)?[\w-]+\.js$", name) and pages:
            complaints += [f"{name}: {what}" for _, what in sorted(bad_data((folder / name).read_text(), pages))]
    declared = sum(1 for name in pages if DECLARED.match(name))
    return complaints, f"{len(pages)} pages, {declared} of them of what is declared, {links} links"
