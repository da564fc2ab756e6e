"""Walks through namespaces, classes, functions and statements, to the expressions."""

import collections

from .code import Code
from .types import CLASS_KEYS

# In what an expression stands: "if", "loop", "switch", "init", "return", "statement" or "macro".
Expression = collections.namedtuple("Expression", "stands_in begin end type")  # type: of what it initialises


class Function:
    """Whose statements are read. `statement` is what an expression stands in that is a statement."""

    def __init__(self, statement="statement"):
        self.statement = statement
        self.declares = False
        self.conditions = []  # (index of a co_await, keyword)


class Reader:
    def __init__(self, tokens, types, shapes):
        self.code = Code(tokens)
        self.types, self.shapes = types, shapes
        self.variables = collections.defaultdict(list)  # name -> [(index, tokens of the type)]
        self.read_awaits = set()
        shapes.read_by(self)

    def type_of(self, name, index):
        """Of the variable of that name that was declared last before the token; None if there is none."""
        before = [words for at, words in self.variables[name] if at < index]
        return before[-1] if before else None

    def declare(self, begin, end, **how):
        declared = self.code.declared(begin, end, **how)
        if declared:
            self.variables[self.code.words[declared.name]].append((declared.name, declared.words))
        return declared

    def read_macro(self):
        """The text of a macro, which may become part of any expression."""
        self.statements(0, len(self.code.words), Function("macro"), [])
        self.read_closures()

    def read(self):
        code = self.code
        self.scope(0, len(code.words))
        self.read_closures()
        if any(code.is_wait(index) and index not in self.read_awaits for index in range(len(code.words))):
            # A piece of a function on a page, or a function that was not seen as one.
            self.statements(0, len(code.words), Function(), [])

    def read_closures(self):
        for closure in self.code.closures.values():
            self.parameters(closure.captures_end + 1)
        for closure in self.code.closures.values():
            self.function(closure.opening)

    # ---- namespaces and classes

    def scope(self, begin, end, of_class=""):
        """The variables declared in a scope; whether something private, virtual or a constructor is in it."""
        code = self.code
        start, index, found, is_closed = begin, begin, [], False
        while index < end:
            word = code.words[index]
            if word == ";":
                if code.words[start] == "using" and code.word(start + 2) == "=":
                    self.types.add_alias(code.words[start + 1], code.words[start + 3:index])
                declared = self.declare(start, index, follows=("=", ";", "{", "[", ",", ":"))
                if declared and not {"static", "friend", "using", "typedef"} & set(code.words[start:declared.name]):
                    found.append(declared)
                if not declared and "(" in code.words[start:index]:
                    self.signature(start, index)
                start = index + 1
            elif word == ":" and code.word(index - 1) in ("public", "private", "protected"):
                is_closed = is_closed or code.word(index - 1) != "public"
                start = index + 1
            elif word == "{":
                kind = self.brace(start, index)
                after = code.ends[index]
                if kind == "function":
                    self.signature(start, index)
                    after = self.function(index, is_closure=False)
                elif kind == "namespace":
                    self.scope(index + 1, after)
                elif kind in CLASS_KEYS:
                    self.class_(start, index, kind)
                if kind in ("function", "namespace"):
                    start = after + 1
                index = after
            elif word == "(":
                # A constructor makes no aggregate of it.
                is_closed = is_closed or (code.word(index - 1) == of_class != "" and code.word(index - 2) != "~")
                index = code.ends[index]
            elif word == "virtual":
                is_closed = True
            elif index in code.ends:
                index = code.ends[index]
            index += 1
        return found, is_closed

    def brace(self, start, opening):
        """What begins with a brace: a function, a namespace, a class by its key, or an initialiser."""
        code = self.code
        level = list(code.level(start, opening))
        words = [code.words[index] for index in level]
        before = code.word(opening - 1)
        if "namespace" in words or (before.startswith('"') and "extern" in words):
            return "namespace"
        arguments = [index for index in level if code.words[index] == "(" and code.ends_operand(index - 1)
                     and code.word(index - 1) not in ("alignas", "noexcept", "decltype")]
        keys = [word for word in words if word in CLASS_KEYS]
        if keys and not arguments:
            return "enum" if "enum" in keys else keys[-1]
        behind = code.words[code.ends[arguments[-1]] + 1:opening] if arguments else []
        operator = "operator" in words
        if not arguments and not operator:
            return "initialiser"
        if before in (")", "}", "const", "noexcept", "override", "final", "try", "&", "&&", "mutable"):
            return "function"
        return "function" if ("->" in behind or "requires" in behind) and ":" not in words else "initialiser"

    def class_(self, start, opening, key):
        code = self.code
        head = [index for index in code.level(start, opening)]
        keys = [index for index in head if code.words[index] in CLASS_KEYS]
        names = [index for index in head if index > keys[-1] and code.is_name(index) and code.words[index] != "final"]
        name = code.words[names[0]] if names else ""
        if key == "enum":
            self.types.enums.add(name)
            self.types.add(name)
            return
        members, is_closed = self.scope(opening + 1, code.ends[opening], name)
        types = [member.words for member in members]
        types += [[code.words[index]] for index in names[1:]]  # bases
        body = code.words[opening:code.ends[opening]]
        if any(body[at:at + 3] == ["~", name, "("] and "default" not in body[at:at + 7] for at in range(len(body))):
            types.append(["string"])
        is_aggregate = key != "class" and not is_closed
        self.types.add(name, is_aggregate, types, {code.words[member.name] for member in members})

    def signature(self, start, stop):
        """Notes a function that is declared there, and its parameters."""
        code = self.code
        while code.word(start) == "template" and start + 1 in code.ends:
            start = code.ends[start + 1] + 1
        declared = code.declared(start, stop, follows=("(",))
        if declared and code.word(declared.name + 1) == "(":
            result, opening = declared.words, declared.name + 1
            behind = code.words[code.ends[opening]:stop]
            if "->" in behind:
                result = behind[behind.index("->") + 1:]
            self.types.add_function(code.words[declared.name], result, self.parameters(opening))
            return
        for index in code.level(start, stop):
            if code.words[index] == "(" and code.word(index - 1) not in ("alignas", "decltype", "explicit"):
                self.parameters(index)
                return

    def parameters(self, opening):
        """[(type, tokens of the default)]"""
        code, found = self.code, []
        if code.word(opening) != "(":
            return found
        for begin, end in code.split(opening + 1, code.ends[opening]):
            declared = self.declare(begin, end)
            default = code.words.index("=", begin, end) + 1 if "=" in code.words[begin:end] else end
            words = declared.words if declared else [code.words[index] for index in range(begin, min(default, end))]
            found.append((words, code.words[default:end]))
        return found

    # ---- statements

    def function(self, opening, is_closure=True):
        """Reads a function from its body on; its last token."""
        code = self.code
        function = Function()
        end = code.ends[opening]
        self.statements(opening + 1, end, function, [])
        while code.word(end + 1) == "catch" and code.word(end + 2) == "(":
            end = self.handler(end + 1, function, [])
        if not is_closure and not function.declares:
            for index, keyword in function.conditions:
                self.shapes.condition(index, keyword)
        return end

    def handler(self, index, function, continues):
        """Of a catch; its last token."""
        opening = self.code.ends[index + 1] + 1
        function.declares = function.declares or self.code.word(index + 2) != "..."
        if self.code.word(opening) == "{":
            self.statements(opening + 1, self.code.ends[opening], function, continues)
        return self.code.ends.get(opening, opening)

    def statements(self, begin, end, function, continues):
        while begin < end:
            begin = self.statement(begin, end, function, continues)

    def statement(self, index, end, function, continues):
        """Reads a statement; the index behind it. A continue in it is appended to `continues`."""
        code = self.code
        word, after = code.words[index], index + 1
        if word == "{":
            self.statements(after, code.ends[index], function, continues)
            return code.ends[index] + 1
        if word in ("if", "while", "switch", "for"):
            return self.controlled(word, index, end, function, continues)
        if word == "do":
            inside = []
            after = self.statement(after, end, function, inside)
            if code.word(after) == "while" and code.word(after + 1) == "(":
                closing = code.ends[after + 1]
                self.condition("do", after + 2, closing, function)
                if inside and code.waits(after + 2, closing):
                    for each in inside:
                        self.shapes.skipped_condition(each)
                return closing + 2
            return after
        if word in ("else", "try"):
            return after
        if word == "catch" and code.word(after) == "(":
            return self.handler(index, function, continues) + 1
        if word in ("case", "default") or (code.is_name(index) and code.word(after) == ":"):
            for each in code.level(index, end):
                if code.words[each] == ":":
                    return each + 1
        if word in ("continue", "break"):
            if word == "continue":
                continues.append(index)
            return after
        if word in CLASS_KEYS or (word == "template"):
            return self.local_class(index, end, function)
        return self.simple(index, end, function)

    def local_class(self, index, end, function):
        function.declares = True
        for each in self.code.level(index, end):
            if self.code.words[each] == ";":
                self.scope(index, each + 1)
                return each + 1
        return end

    def simple(self, index, end, function):
        code = self.code
        stop = next((each for each in code.level(index, end) if code.words[each] == ";"), end)
        word = code.words[index]
        if word in ("using", "typedef"):
            function.declares = True
            return stop + 1
        declared = self.declare(index, stop)
        function.declares = function.declares or declared is not None or "auto" in code.words[index:stop]
        if declared:
            self.initialiser(declared, stop)
        elif word in ("co_return", "return", "throw", "co_yield"):
            self.expression("return", index if word == "co_yield" else index + 1, stop)
        else:
            self.expression(function.statement, index, stop)
        return stop + 1

    def controlled(self, word, index, end, function, continues):
        code = self.code
        opening = index + 1
        while code.word(opening) in ("constexpr", "consteval", "co_await", "!"):
            opening += 1
        if code.word(opening) == "(":
            closing = code.ends[opening]
            parts = list(code.split(opening + 1, closing, ";"))
            if word == "for":
                self.for_(opening + 1, closing, function)
            else:
                for part in parts[:-1]:
                    self.simple(*part, function)
                if parts:
                    self.condition(word, *parts[-1], function)
            opening = closing + 1
        if code.word(opening) == ";":
            return opening + 1
        inside = continues if word in ("if", "switch") else []
        if code.word(opening) == "[" and code.word(opening + 1) == "[":
            opening = code.ends[opening] + 1
        after = self.statement(opening, end, function, inside) if opening < end else end
        if word == "if" and code.word(after) == "else" and after < end:
            after = self.statement(after + 1, end, function, continues) if after + 1 < end else end
        return after

    def for_(self, begin, end, function):
        code = self.code
        stops = [index for index in code.level(begin, end) if code.words[index] == ";"]
        if len(stops) < 2:  # for (T x : y), or for (T x = y; U z : x)
            if stops:
                self.simple(begin, stops[0], function)
            self.range_for(stops[0] + 1 if stops else begin, end, function)
            return
        self.simple(begin, stops[0], function)
        if stops[0] + 1 < stops[1]:
            self.condition("for", stops[0] + 1, stops[1], function)
        self.expression("loop", stops[1] + 1, end)

    def range_for(self, begin, end, function):
        code = self.code
        colon = next((index for index in code.level(begin, end) if code.words[index] == ":"), None)
        if colon is not None:
            function.declares = True
            self.declare(begin, colon)
            self.expression("init", colon + 1, end)

    def condition(self, keyword, begin, end, function):
        code = self.code
        declared = self.declare(begin, end, follows=("=", "{"))
        if declared:
            function.declares = True
            self.initialiser(declared, end)
            return
        waits = code.waits(begin, end)
        if waits:
            function.conditions.append((waits[0], keyword))
        kind = {"if": "if", "switch": "switch"}.get(keyword, "loop")
        self.expression(kind, begin, end)

    def initialiser(self, declared, end):
        begin = declared.name + 1
        if self.code.word(declared.name) == "[":  # auto [a, b]
            begin = self.code.ends[declared.name] + 1
        while self.code.word(begin) == "[" and begin < end:  # char text[20]
            begin = self.code.ends[begin] + 1
            declared = declared._replace(words=[*declared.words, "[]"])
        if self.code.word(begin) == "=":
            begin += 1
        self.expression("init", begin, end, declared.words)

    def expression(self, stands_in, begin, end, type_=None):
        if begin < end:
            waits = self.code.waits(begin, end)
            self.read_awaits.update(waits)
            self.shapes.expression(Expression(stands_in, begin, end, type_), waits)
