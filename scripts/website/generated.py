"""Pages that exist only on the site."""

import collections
import html
import re

from .markdown import CODE, FENCE, example_file

# The most pages in the "see also" of a class.
MOST_SEEN = 3


class Example:
    def __init__(self, path):
        comment = re.match(r"(?:// .*\n)+", path.read_text())
        text = comment[0].replace("// ", "").replace("\n", " ") if comment else ""
        self.name = path.name
        self.lesson = text.partition("Lesson: ")[2].partition(". ")[0].strip().removesuffix(".")


def examples(root):
    return [Example(path) for path in sorted((root / "examples").glob("*.cpp"))]


def page_of_examples(found):
    return "\n".join(["# Examples {#examples_list}", "",
                      "One lesson each. The tests build and run them.", "",
                      "| example | lesson |", "|---|---|",
                      *(f'| <a href="{example_file(each.name)}">{each.name}</a> | {each.lesson} |' for each in found),
                      ""])


def names_in(text, names):
    """The names of the reference in a page, each as often as it occurs."""
    words = [match["code"] for match in re.finditer(CODE, FENCE.sub("", text))]
    for fence in FENCE.finditer(text):
        if fence["language"] == "cpp":
            words += re.findall(r"[\w:]+", fence["code"])
    return [word for word in words if names.meant_by(word)]


def see_also(contents, names):
    """For the page of a class: the user pages that mention it often, compared with their other names."""
    scores = collections.defaultdict(dict)
    for page in contents.chapters[0].pages:
        found = names_in((contents.root / page.path).read_text(), names)
        for name, count in collections.Counter(names.class_of(each) for each in found).items():
            scores[name][page] = count * count / len(found)
    scores.pop(None, None)
    blocks = []
    for name, pages in sorted(scores.items()):
        best = max(pages.values())
        chosen = [page for page in pages if pages[page] >= best / 5]
        chosen.sort(key=lambda page: (-pages[page], page.title))
        links = ", ".join(f'@ref {page.label} "{page.title}"' for page in chosen[:MOST_SEEN])
        blocks.append(f"/** @{names.kinds[name]} {name}\n * @see {links}\n */\n")
    return "".join(blocks)


def layout(template, contents, found, groups):
    """The navigation: `template` with @CHAPTER@ replaced by a tab for each page."""
    def tabs(entries):
        return "\n".join(f'      <tab type="user" url="{url}" title="{html.escape(title, quote=False)}"/>'
                         for url, title in entries)

    def of_pages(pages):
        return tabs((f"@ref {page.label}", page.tab) for page in pages)

    users, developers, decisions = contents.chapters
    quickstart, *others = users.pages
    parts = {"quickstart": of_pages([quickstart]), "users": of_pages(others),
             "examples": tabs((example_file(each.name), each.name) for each in found),
             "developers": of_pages(developers.pages), "decisions": of_pages(decisions.pages), "groups": groups}
    return re.sub(r"@(\w+)@", lambda match: parts[match[1]], template)


def header(text):
    """Doxygen's own header of a page, with the additions that the theme needs."""
    scripts = "".join(f'<script type="text/javascript" src="$relpath^doxygen-awesome-{name}.js"></script>\n'
                      for name in ("darkmode-toggle", "fragment-copy-button", "paragraph-link", "interactive-toc"))
    start = "".join(f"{name}.init();" for name in ("DoxygenAwesomeDarkModeToggle", "DoxygenAwesomeFragmentCopyButton",
                                                   "DoxygenAwesomeParagraphLink", "DoxygenAwesomeInteractiveToc"))
    return text.replace("</head>", f'{scripts}<script type="text/javascript">{start}</script>\n</head>')
