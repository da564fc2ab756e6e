"""Walks through namespaces, classes, functions and statements, down to the expressions."""

import collections

from .code import Code, Declared
from .tokens import covers
from .types import CLASS_KEYS, Signature, arguments_of, split, substitute

# The context of an expression: "if", "loop", "switch", "init", "return", "statement" or "macro".
Expression = collections.namedtuple("Expression", "stands_in begin end type")  # type: of the object that it initialises
# A name and the range of tokens in which it is visible. `what` is a type, or a list of signatures.
Known = collections.namedtuple("Known", "begin end what")


class Function:
    """A function whose statements are read. `statement` is the context of an expression that is a statement."""

    def __init__(self, statement="statement"):
        self.statement = statement
        self.declared = []    # the branches of #if in which something is declared
        self.conditions = []  # (index of a co_await, keyword)


def last_known(entries, index):
    return next((each.what for each in reversed(entries) if each.begin < index < each.end), None)


class Reader:
    def __init__(self, tokens, types, shapes):
        self.code = Code(tokens)
        self.types, self.shapes = types, shapes
        self.variables = collections.defaultdict(list)  # name -> [Known]
        self.callables = collections.defaultdict(list)  # the same for closures and pointers to functions
        self.classes = []  # Known, by name
        self.read_awaits = set()
        shapes.read_by(self)

    # ---- the meaning of names

    def type_of(self, name, index):
        """The type of the variable of that name declared last before the token; None if there is none."""
        return last_known(self.variables[name], index) or self.types.member(self.class_at(index), name)

    def class_at(self, index):
        """The class of which the function around a token is a member; empty if there is none."""
        return last_known(self.classes, index) or ""

    def signatures_of(self, index):
        """The signatures of the function that a name refers to."""
        name, types = self.code.words[index], self.types
        if self.code.word(index - 1) not in (".", "->", "::"):
            local = last_known(self.callables[name], index)
            if local is not None:
                return local
            variable = self.type_of(name, index)
            if variable:
                return types.calls(variable)
        return types.functions.get(name, ()) or types.constructors(name)

    def note(self, declared, end):
        self.variables[self.code.words[declared.name]].append(Known(declared.name, end, declared.words))

    def is_product(self, declared, begin):
        """Whether a * b; or a & b = c; is an operation on two variables, not a declaration."""
        return (len(declared.words) == 2 and declared.words[1] in ("*", "&", "&&")
                and last_known(self.variables[declared.words[0]], begin) is not None)

    def declare(self, begin, end, scope_end=None, **how):
        """Records the one variable that is declared there."""
        declared = self.code.declared(begin, end, **how)
        if declared and not self.is_product(declared, begin):
            self.note(declared, scope_end or self.code.scope_end(begin))
            return declared
        return None

    def declare_all(self, begin, end, **how):
        """Records all declared variables. Returns [(Declared, end of its initialiser)]."""
        found = list(self.code.declarators(begin, end, **how))
        if found and self.is_product(found[0][0], begin):
            return []
        for declared, stop in found:
            self.note(declared, self.code.scope_end(begin))
            self.note_callable(declared, stop)
        return found

    def note_callable(self, declared, end):
        """Records auto f = [](int) {}, auto f = &g, void (*f)(int) and std::function<void(int)> f."""
        code, begin, found = self.code, declared.end, None
        if begin < end and code.words[begin] in "={(":
            begin += 1
        if code.word(declared.end - 1) == ")":
            found = [Signature((), self.listed(code.parents[declared.end - 1]))]
        elif begin in code.closures:
            found = [Signature((), self.listed(code.closures[begin].captures_end + 1))]
        elif code.word(begin) == "&" or (declared.words == ["auto"] and end - begin == 1):
            found = self.types.functions.get(code.words[end - 1]) if end > begin else None
        elif len(declared.words) > 3 and "function" in declared.words[-1:] + declared.words[:4]:
            inside = arguments_of(declared.words)
            if inside and inside[0][-1] == ")" and "(" in inside[0]:
                parameters = split(inside[0][inside[0].index("(") + 1:-1])
                found = [Signature((), [(each, []) for each in parameters])]
        if found:
            self.callables[code.words[declared.name]].append(
                Known(declared.name, code.scope_end(declared.name), found))

    # ---- files and macros

    def read_macro(self):
        """Reads the text of a macro, which may become part of any expression."""
        self.statements(0, len(self.code.words), Function("macro"), [])
        self.read_closures()

    def read(self):
        code = self.code
        self.scope(0, len(code.words))
        self.read_closures()
        if any(code.is_wait(index) and index not in self.read_awaits for index in range(len(code.words))):
            # A part of a function on a page, or a function that was not recognised as one.
            self.statements(0, len(code.words), Function(), [])

    def read_closures(self):
        for closure in self.code.closures.values():
            self.parameters(closure.captures_end + 1, closure.closing)
        for closure in self.code.closures.values():
            self.function(closure.opening)

    # ---- namespaces and classes

    def scope(self, begin, end, of_class=""):
        """The members declared in a scope, and whether it has something private, virtual or a constructor."""
        code = self.code
        start, index, found, is_closed, body = begin, begin, [], False, None
        while index < end:
            word = code.words[index]
            if word == ";":
                is_closed = self.alias(start, index, of_class) or is_closed
                if body:
                    found += self.behind_class(*body, index)
                else:
                    found += self.declaration(start, index, of_class)
                start, body = index + 1, None
            elif word == ":" and code.word(index - 1) in ("public", "private", "protected"):
                is_closed = is_closed or code.word(index - 1) != "public"
                start = index + 1
            elif word == "{":
                kind = self.brace(start, index)
                after = code.ends[index]
                if kind == "function":
                    self.signature(start, index)
                    self.note_class_of(start, index)
                    after = self.function(index, is_closure=False)
                elif kind == "namespace":
                    self.scope(index + 1, after)
                elif kind in CLASS_KEYS:
                    body = self.class_(start, index, kind), after + 1
                if kind in ("function", "namespace"):
                    start = after + 1
                index = after
            elif word == "(":
                # A class with a constructor is not an aggregate.
                if code.word(index - 1) == of_class != "" and code.word(index - 2) != "~":
                    is_closed = True
                    self.types.add_constructor(of_class, self.listed(index))
                elif of_class and code.words[index - 3:index] == ["operator", "(", ")"]:
                    self.types.add_call(of_class, self.listed(index))
                index = code.ends[index]
            elif word == "virtual":
                is_closed = True
            elif index in code.ends:
                index = code.ends[index]
            index += 1
        return found, is_closed

    def declaration(self, start, end, of_class):
        """[(name, type)] of a statement that declares members, variables or functions."""
        code = self.code
        variables = self.declare_all(start, end, follows=("=", ";", "{", "[", ",", ":"))
        if variables:
            is_member = not {"static", "friend"} & set(code.words[start:variables[0][0].name])
            return [(code.words[each.name], each.words) for each, _ in variables] if is_member else []
        if "(" not in code.words[start:end]:
            return []
        self.signature(start, end)
        is_macro = code.word(start + 1) == "(" and code.ends[start + 1] == end - 1 and code.words[start].isupper()
        return [("", ["?"])] if of_class and is_macro else []  # It may declare anything.

    def behind_class(self, name, begin, end):
        """[(name, type)] of struct ... { ... } name;, or the members of struct { ... };"""
        found = []
        for start, stop in self.code.split(begin, end):
            if self.code.is_name(start):
                self.note(Declared([name], start, start + 1), self.code.scope_end(start))
                found.append((self.code.words[start], [name]))
        return found or (self.types.members(name) if name.startswith("<") else [])

    def alias(self, start, end, of_class=""):
        """Records using and typedef. Returns whether it inherits constructors."""
        code, parameters = self.code, []
        if code.word(start) == "template" and start + 1 in code.ends:
            parameters = self.template_parameters(start + 1)
            start = code.ends[start + 1] + 1
        words = code.words[start:end]
        if words[:1] == ["using"] and words[2:3] == ["="]:
            self.types.add_alias(words[1], words[3:], [name for name, _ in parameters])
        elif words[:1] == ["typedef"]:
            for declared, _ in code.declarators(start + 1, end):
                self.types.add_alias(code.words[declared.name], declared.words)
        return of_class != "" and words[:1] == ["using"] and len(words) > 3 and words[-1] in words[1:-2]

    def template_parameters(self, opening):
        """[(name, tokens of the default)]"""
        code, found = self.code, []
        for begin, end in code.split(opening + 1, code.ends.get(opening, opening)):
            equal = next((index for index in code.level(begin, end) if code.words[index] == "="), end)
            if equal > begin:
                found.append((code.words[equal - 1], code.words[equal + 1:end]))
        return found

    def note_class_of(self, start, opening):
        """The class in void type::name() {}"""
        code = self.code
        for index in code.level(start, opening):
            if code.is_call(index):
                if code.word(index - 2) == "::" and code.is_name(index - 3):
                    self.classes.append(Known(index, code.ends[opening], code.words[index - 3]))
                return

    def brace(self, start, opening):
        """Reads a construct that begins with a brace: a function, a namespace, a class (by its keyword), or an
        initialiser."""
        code = self.code
        level = list(code.level(start, opening))
        words = [code.words[index] for index in level]
        before = code.word(opening - 1)
        if "namespace" in words or (before.startswith('"') and "extern" in words):
            return "namespace"
        arguments = [index for index in level if code.is_call(index)
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
        """Records a class. Returns its name, in < > if it has none."""
        code = self.code
        head = list(code.level(start, opening))
        keys = [index for index in head if code.words[index] in CLASS_KEYS]
        colon = next((index for index in head if index > keys[-1] and code.words[index] == ":"), opening)
        names = [code.words[index] for index in head
                 if keys[-1] < index < colon and code.is_name(index) and code.words[index] != "final"]
        name = names[-1] if names else "<" + " ".join(code.words[opening:code.ends[opening]]) + ">"
        if key == "enum":
            self.types.enums.add(name)
            return name
        parameters = self.template_parameters(start + 1) if code.word(start) == "template" else []
        self.types.add(name, [each for each, _ in parameters])
        end = code.ends[opening]
        self.classes.append(Known(opening, end, name))
        members, is_closed = self.scope(opening + 1, end, name)
        bases = []
        for begin, stop in code.split(colon + 1, opening):
            words = code.words[begin:stop]
            is_closed = is_closed or bool({"private", "protected", "virtual"} & set(words))
            bases.append([word for word in words if word not in ("private", "protected", "virtual", "public")])
        body = code.words[opening:end]
        if any(body[at:at + 3] == ["~", name, "("] and "default" not in body[at:at + 7] for at in range(len(body))):
            members.append(("", ["string"]))
        self.types.add_members(name, key != "class" and not is_closed, members, bases, "virtual" in body)
        return name

    def signature(self, start, stop):
        """Records a function declared there, and its parameters."""
        code, defaults = self.code, {}
        while code.word(start) == "template" and start + 1 in code.ends:
            defaults.update((name, default) for name, default in self.template_parameters(start + 1) if default)
            start = code.ends[start + 1] + 1
        scope_end = code.ends[stop] if code.word(stop) == "{" else stop
        declared = code.declared(start, stop, follows=("(",))
        if declared and code.word(declared.name + 1) == "(":
            result, opening = declared.words, declared.name + 1
            behind = code.words[code.ends[opening]:stop]
            if "->" in behind:
                result = behind[behind.index("->") + 1:]
            parameters = [(substitute(type_, defaults), default)
                          for type_, default in self.parameters(opening, scope_end)]
            self.types.add_function(code.words[declared.name], result, parameters)
            return
        for index in code.level(start, stop):
            if code.words[index] == "(" and code.word(index - 1) not in ("alignas", "decltype", "explicit"):
                self.parameters(index, scope_end)
                return

    def listed(self, opening):
        """[(type, tokens of the default)] of parameters."""
        code, found = self.code, []
        if code.word(opening) != "(":
            return found
        for begin, end in code.split(opening + 1, code.ends[opening]):
            declared = code.declared(begin, end)
            default = code.words.index("=", begin, end) + 1 if "=" in code.words[begin:end] else end
            words = declared.words if declared else [code.words[index] for index in range(begin, min(default, end))]
            found.append((words, code.words[default:end]))
        return found

    def parameters(self, opening, scope_end):
        code = self.code
        if code.word(opening) == "(":
            for begin, end in code.split(opening + 1, code.ends[opening]):
                self.declare(begin, end, scope_end)
        return self.listed(opening)

    # ---- statements

    def function(self, opening, is_closure=True):
        """Reads a function from its body on. Returns the index of its last token."""
        code = self.code
        function = Function()
        end = code.ends[opening]
        self.statements(opening + 1, end, function, [])
        while code.word(end + 1) == "catch" and code.word(end + 2) == "(":
            end = self.handler(end + 1, function, [])
        if function.conditions and not is_closure:
            for index in code.own(opening, end):
                if index in code.closures:  # Its class is declared here.
                    self.declares(function, index)
            for index, keyword in function.conditions:
                if not covers(function.declared, code.tokens[index].branches):
                    self.shapes.condition(index, keyword)
        return end

    def declares(self, function, index):
        function.declared.append(self.code.tokens[index].branches)

    def handler(self, index, function, continues):
        """Reads a catch. Returns the index of its last token."""
        opening = self.code.ends[index + 1] + 1
        if self.code.word(index + 2) != "...":
            self.declares(function, index)
        if self.code.word(opening) == "{":
            self.statements(opening + 1, self.code.ends[opening], function, continues)
        return self.code.ends.get(opening, opening)

    def statements(self, begin, end, function, continues):
        while begin < end:
            begin = self.statement(begin, end, function, continues)

    def statement(self, index, end, function, continues):
        """Reads a statement. Returns the index after it. Appends each continue in it to `continues`."""
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
        self.declares(function, index)
        for each in self.code.level(index, end):
            if self.code.words[each] == ";":
                self.scope(index, each + 1)
                return each + 1
        return end

    def simple(self, index, end, function):
        code = self.code
        stop, is_initialised = end, False
        for each in code.level(index, end):
            is_initialised = is_initialised or code.words[each] == "="
            if code.words[each] == "{" and not is_initialised:
                kind = self.brace(index, each)
                if kind == "namespace":  # On a page.
                    self.scope(each + 1, code.ends[each])
                elif kind == "function":  # On a page, or controlled by a macro.
                    self.expression(function.statement, index, each)
                    self.statements(each + 1, code.ends[each], function, [])
                if kind in ("namespace", "function"):
                    return code.ends[each] + 1
            if code.words[each] == ";":
                stop = each
                break
        word = code.words[index]
        if word in ("using", "typedef"):
            self.declares(function, index)
            self.alias(index, stop)
            return stop + 1
        found = self.declare_all(index, stop)
        for declared, after in found:
            self.declares(function, index)
            self.initialiser(declared, after)
        if found:
            return stop + 1
        if word in ("co_return", "return", "throw", "co_yield"):
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
        if colon is None:
            return
        self.declares(function, colon)
        declared = self.declare(begin, colon, self.code.scope_end(begin), follows=(";",))
        if code.word(colon + 1) == "{":
            self.read_list(declared, colon + 1)
        self.expression("init", colon + 1, end)

    def read_list(self, declared, opening):
        """Reads the list in for (T x : {...})"""
        if self.code.waits(opening, self.code.ends[opening]):
            self.shapes.range_list(opening, declared.words if declared else [])

    def condition(self, keyword, begin, end, function):
        code = self.code
        declared = self.declare(begin, end, follows=("=", "{"))
        if declared:
            self.declares(function, begin)
            self.initialiser(declared, end)
            return
        waits = code.waits(begin, end)
        if waits:
            function.conditions.append((waits[0], keyword))
        kind = {"if": "if", "switch": "switch"}.get(keyword, "loop")
        self.expression(kind, begin, end)

    def initialiser(self, declared, end):
        begin = declared.end
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
