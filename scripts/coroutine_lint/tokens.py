"""From the text of a file to the tokens of C++ in it."""

import bisect
import collections
import re

Token = collections.namedtuple("Token", "kind text at")  # kind: name, number, text or sign

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


class Source:
    """A file. `parts` are lists of tokens: its code, or each block of a page; `macros` the text of each macro."""

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
        """Line and column, from 1."""
        line = bisect.bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1

    def tokens(self, at, end):
        tokens, branches = [], []
        while at < end:
            match = LEXEME.match(self.text, at)
            kind = "text" if match.lastgroup == "mark" else match.lastgroup
            text = match[0]
            if kind == "comment":
                self.comment(match)
            elif text == "#" and self.is_first_of_line(at):
                match = DIRECTIVE.match(self.text, at)
                self.directive(match, tokens, branches)
            elif kind != "space" and not (branches and branches[-1][1]):
                if text in OTHER_SPELLING:
                    kind, text = "sign", OTHER_SPELLING[text]
                tokens.append(Token(kind, text, at))
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
        """Of #if and its #else both are read, unless the first opens brackets that it does not close."""
        word, rest = match[1], match[2]
        is_left_out = bool(branches and branches[-1][1])
        if word in ("if", "ifdef", "ifndef"):
            branches.append([len(tokens), is_left_out or (word == "if" and rest.strip() == "0")])
        elif word.startswith("el") and branches:
            texts = [token.text for token in tokens[branches[-1][0]:]]
            is_even = all(texts.count(opening) == texts.count(PAIRS[opening]) for opening in PAIRS)
            branches[-1][1] = not is_even or (len(branches) > 1 and branches[-2][1])
        elif word == "endif" and branches:
            branches.pop()
        elif word == "define" and "co_" in rest and not is_left_out:
            named = MACRO.match(self.text, match.start(2))
            if named:
                self.macros.append(self.tokens(named.end(), match.end()))
