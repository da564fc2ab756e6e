"""Tokens with their brackets: where each bracket closes, what is a closure, what is a declaration."""

import collections

from .tokens import PAIRS
from .types import BUILT_IN, CLASS_KEYS, SPECIFIERS

Closure = collections.namedtuple("Closure", "begin captures_end opening closing")
# The tokens of the type; the indices of the name, and of the token after the name and its parameters.
Declared = collections.namedtuple("Declared", "words name end")

KEYWORDS = set("""return co_return co_await co_yield throw new delete goto break continue if else while do for switch
    case default try catch sizeof alignof noexcept operator this true false nullptr static_cast const_cast
    dynamic_cast reinterpret_cast typeid requires using namespace template typedef static_assert asm public private
    protected concept""".split())
NO_NAMES = KEYWORDS | CLASS_KEYS | SPECIFIERS | BUILT_IN | {"auto", "decltype"}
WAITS = ("co_await", "co_yield")


class Code:
    """A range of tokens is given by two indices, begin and end; end is exclusive."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.words = [token.text for token in tokens]
        self.ends = {}       # index of a bracket, or of the < of template arguments -> index of its end
        self.parents = [None] * len(tokens)  # the index of the bracket around each token
        self.closures = {}   # index of [ -> Closure
        self.captured = {}   # index of the ] of a closure -> the same
        self.templates = {}  # index of the > of template arguments -> index of the <
        self.match_brackets()
        for index, word in enumerate(self.words):
            if word == "<" and index and (self.is_name(index - 1) or self.words[index - 1] == "template"):
                self.match_template(index)
        for index, word in enumerate(self.words):
            if word == "[":
                self.match_closure(index)

    def word(self, index):
        return self.words[index] if 0 <= index < len(self.words) else ""

    def is_name(self, index):
        return (0 <= index < len(self.words) and self.tokens[index].kind == "name"
                and self.words[index] not in NO_NAMES)

    def ends_operand(self, index):
        return index >= 0 and (self.words[index] in (")", "]", "}") or self.is_name(index)
                               or self.tokens[index].kind in ("text", "number")
                               or self.words[index] in ("this", "true", "false", "nullptr"))

    def match_brackets(self):
        openings = []
        for index, token in enumerate(self.tokens):
            self.parents[index] = openings[-1] if openings else None
            if token.kind != "sign":
                continue
            if token.text in PAIRS:
                openings.append(index)
            elif token.text in PAIRS.values():
                while openings:  # a bracket that is never closed ends with the enclosing one
                    opening = openings.pop()
                    self.ends[opening] = index
                    if PAIRS[self.words[opening]] == token.text:
                        break
        for opening in openings:
            self.ends[opening] = len(self.tokens)

    def match_template(self, opening):
        """Whether a < begins template arguments rather than a comparison; if so, records where they end."""
        index = opening + 1
        while index < len(self.words):
            word = self.words[index]
            if word == ">":
                self.ends[opening] = index
                self.templates[index] = opening
                return
            if word == "<" and index not in self.ends:
                self.match_template(index)
            if word in ("(", "[", "<"):
                if index not in self.ends:
                    return
                index = self.ends[index]
            elif word in ("&&", "&"):
                if self.word(index + 1) not in (",", ">", ")", "..."):
                    return
            elif word not in ("::", ",", "*", "...", "-", "=") and self.tokens[index].kind == "sign":
                return
            index += 1

    def match_closure(self, begin):
        before, index = self.word(begin - 1), self.ends[begin] + 1
        is_binding = before == "auto" or (before in ("&", "&&") and self.word(begin - 2) in ("auto", "const"))
        if is_binding or before in ("[", "operator", "delete") or self.ends_operand(begin - 1):
            return
        if self.word(begin + 1) == "[" and self.ends.get(begin + 1) == self.ends[begin] - 1:
            return  # [[nodiscard]]
        if self.word(index) == "<":
            self.match_template(index)
        while self.word(index) not in ("{", "", ";", ",", ")", "]", "}"):
            index = self.ends.get(index, index) + 1
        if self.word(index) == "{":
            self.closures[begin] = Closure(begin, self.ends[begin], index, self.ends[index])
            self.captured[self.ends[begin]] = self.closures[begin]

    def level(self, begin, end):
        """The indices of a range that are in no inner bracket and in no closure."""
        index = begin
        while index < end:
            yield index
            index = self.closures[index].closing if index in self.closures else self.ends.get(index, index)
            index += 1

    def own(self, begin, end):
        """The indices of a range without parameters and bodies of closures, which are functions of their
        own."""
        index = begin
        while index < end:
            yield index
            index = self.captured[index].closing if index in self.captured else index
            index += 1

    def waits(self, begin, end):
        return [index for index in self.own(begin, end) if self.is_wait(index)]

    def is_wait(self, index):
        return self.words[index] in WAITS and self.word(index - 1) not in ("operator", "for")

    def is_call(self, index):
        """Whether a ( begins arguments."""
        return self.words[index] == "(" and (self.ends_operand(index - 1) or index - 1 in self.templates)

    def scope_end(self, index):
        """The end of the braces around a token."""
        while index is not None and self.words[index] != "{":
            index = self.parents[index]
        return len(self.words) if index is None else self.ends[index]

    def split(self, begin, end, separator=","):
        """The ranges between separators that are outside inner brackets."""
        start = begin
        for index in self.level(begin, end):
            if self.words[index] == separator:
                yield start, index
                start = index + 1
        if start < end:
            yield start, end

    def declared(self, begin, end, follows=("=", ";", "{", "(", "[", ",", ":")):
        """The variable that a statement, a condition or a parameter declares; None if it declares none."""
        index, words = begin, []
        while index < end:
            word = self.words[index]
            if word == "[" and self.word(index + 1) == "[":
                index = self.ends[index] + 1
            elif word == "alignas" and self.word(index + 1) == "(":
                index = self.ends[index + 1] + 1
            elif word in SPECIFIERS:
                words.append(word)
                index += 1
            else:
                break
        typed = False
        while index < end and self.words[index] in BUILT_IN | {"auto", "decltype", "struct", "class", "enum"}:
            typed = self.words[index] not in CLASS_KEYS
            words.append(self.words[index])
            index += 1
            if self.word(index) == "(" and words[-1] == "decltype":
                index = self.ends[index] + 1
            elif self.word(index) == "(":  # int(x) declares nothing.
                return self.declared_pointer(words, index, end)
        while not typed and index < end and (self.is_name(index) or self.words[index] == "::"):
            stop = self.ends[index + 1] if self.word(index + 1) == "<" and index + 1 in self.ends else index
            words += self.words[index:stop + 1]
            index = stop + 1
            typed = self.words[stop] != "::" and self.word(index) != "::"
        while index < end and self.words[index] in ("const", "*", "&", "&&", "volatile", "...", "auto"):
            words.append(self.words[index])
            index += 1
        if not typed or index >= end:
            return None
        if self.words[index] == "[" and "auto" in words:
            return Declared(words, index, self.ends[index] + 1)
        if self.words[index] == "(":
            return self.declared_pointer(words, index, end)
        behind = self.word(index + 1) if index + 1 < end else ";"
        return Declared(words, index, index + 1) if self.is_name(index) and behind in follows else None

    def declared_pointer(self, words, opening, end):
        """The name in void (*name)(int), int (&name)[3] and int (type::*name)()."""
        name, behind = self.ends[opening] - 1, self.ends[opening] + 1
        if self.is_name(name) and self.words[name - 1] in ("*", "&") and behind < end and self.words[behind] in "([":
            return Declared([*words, self.words[name - 1]], name, self.ends[behind] + 1)
        return None

    def declarators(self, begin, end, **how):
        """(Declared, end of its initialiser) for each variable that a statement declares."""
        first = self.declared(begin, end, **how)
        if not first:
            return
        base = list(first.words)
        while base[-1] in ("*", "&", "&&"):
            base.pop()
        for start, stop in self.split(first.end, end):
            if start == first.end:
                yield first, stop
                continue
            words = list(base)
            while start < stop and self.words[start] in ("const", "*", "&", "&&"):
                words.append(self.words[start])
                start += 1
            if self.is_name(start):
                yield Declared(words, start, start + 1), stop
        if first.end >= end:
            yield first, end
