"""Splits the text of a file into C++ tokens."""

import bisect
import collections
import re

# kind: name, number, text or sign; branches: [(Conditional, number of the branch)], outer ones first.
Token = collections.namedtuple("Token", "kind text at branches", defaults=[()])

PAIRS = {"(": ")", "[": "]", "{": "}"}

LEXEME = re.compile(r"""
    (?P<space>(?:\s|\\\r?\n)+)
  | (?P<comment>//(?:[^\\\n]|\\[\s\S])*|/\*[\s\S]*?(?:\*/|\Z))
  | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\([\s\S]*?\)(?P=mark)"\w*
           | (?:u8|[uUL])?(?:"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])+'?)\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign><=>|->\*|\.\.\.|<<=|->|::|&&|\|\||\+\+|--|<<|[-+*/%&|^=!<>]=|<:(?!:[^:>])|:>|<%|%>|[\s\S])
""", re.VERBOSE)
OTHER_SPELLING = {"and": "&&", "or": "||", "not": "!", "<:": "[", ":>": "]", "<%": "{", "%>": "}"}
DIRECTIVE = re.compile(r"#[ \t]*(\w*)((?:/\*[\s\S]*?\*/|\\\r?\n|(?!//)[^\n])*)")
MACRO = re.compile(r"\s*\w+(?:\([^)]*\))?")
BLOCK = re.compile(r"^[ \t]*```(?:cpp|c\+\+|cxx)\b[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
ALLOW = re.compile(r"lint_coroutines:\s*allow\b[\s:,;-]*(.*)")


class Conditional:
    """An #if with its branches. Every branch that some build may have is read, except one that follows a branch
    with unclosed brackets."""

    def __init__(self, first, is_left_out, truth):
        self.first = first              # index of the first token of the branch
        self.all_left_out = is_left_out
        self.branch, self.has_else = 0, False
        self.is_certain = truth is True  # whether the branch is in every build
        self.is_left_out = is_left_out or truth is False
        self.read = [] if self.is_left_out else [0]

    def next(self, first, is_even, is_else, truth):
        self.all_left_out = self.all_left_out or not is_even or self.is_certain
        self.is_left_out = self.all_left_out or truth is False
        self.is_certain = not self.read and (is_else or truth is True)
        self.first, self.branch, self.has_else = first, self.branch + 1, self.has_else or is_else
        if not self.is_left_out:
            self.read.append(self.branch)


def covers(found, branches):
    """Whether every build that has the code in `branches` has one of those in `found`."""
    if any(branches[:len(each)] == each for each in found):
        return True
    entered = [conditional for conditional, _ in branches]
    for depth in range(len(branches) + 1):
        outer = branches[:depth]
        for conditional in {each[depth][0] for each in found if len(each) > depth and each[:depth] == outer}:
            if conditional not in entered and conditional.has_else and all(covers(found, (*outer, (conditional, branch)))
                                            for branch in conditional.read):
                return True
    return False


class Source:
    """A file. `parts` are lists of tokens: its code, or each block of a page; `macros` are the texts of the
    macros."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = [0] + [newline.end() for newline in re.finditer("\n", text)]
        self.allowed, self.without_reason = set(), []
        self.parts, self.macros = [], []
        if path.suffix == ".md":
            for block in BLOCK.finditer(text):
                self.parts.append(self.tokens(*block.span(1)))
        else:
            self.parts.append(self.tokens(0, len(text)))

    def place(self, at):
        """Line and column, counted from 1."""
        line = bisect.bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1

    def tokens(self, at, end):
        tokens, branches, within = [], [], ()
        while at < end:
            match = LEXEME.match(self.text, at)
            kind = "text" if match.lastgroup == "mark" else match.lastgroup
            text = match[0]
            if kind == "comment":
                self.comment(match)
            elif text == "#" and self.is_first_of_line(at):
                match = DIRECTIVE.match(self.text, at)
                self.directive(match, tokens, branches)
                within = tuple((each, each.branch) for each in branches if not each.is_certain)
            elif kind != "space" and not (branches and branches[-1].is_left_out):
                if text in OTHER_SPELLING:
                    kind, text = "sign", OTHER_SPELLING[text]
                tokens.append(Token(kind, text, at, within))
            at = match.end()
        return tokens

    def is_first_of_line(self, at):
        return not self.text[self.lines[self.place(at)[0] - 1]:at].strip()

    def comment(self, match):
        allow = ALLOW.search(match[0])
        if not allow:
            return
        line = self.place(match.end() - 1)[0]
        self.allowed.add(line + 1 if self.is_first_of_line(match.start()) else line)
        if not allow[1].strip("*/ \t\r\n"):
            self.without_reason.append(match.start())

    def directive(self, match, tokens, branches):
        word, rest = match[1], match[2].strip()
        truth = {"0": False, "false": False, "1": True, "true": True}.get(rest) if word in ("if", "elif") else None
        is_left_out = bool(branches and branches[-1].is_left_out)
        if word in ("if", "ifdef", "ifndef"):
            branches.append(Conditional(len(tokens), is_left_out, truth))
        elif word.startswith("el") and branches:
            texts = [token.text for token in tokens[branches[-1].first:]]
            is_even = all(texts.count(opening) == texts.count(PAIRS[opening]) for opening in PAIRS)
            branches[-1].next(len(tokens), is_even, word == "else", truth)
        elif word == "endif" and branches:
            branches.pop()
        elif word == "define" and "co_" in rest and not is_left_out:
            named = MACRO.match(self.text, match.start(2))
            if named:
                self.macros.append(self.tokens(named.end(), match.end()))
