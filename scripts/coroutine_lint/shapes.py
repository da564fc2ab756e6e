"""The shapes that GCC 12 compiles wrongly. docs/usage/gcc-12.md has them all, with what is right beside them."""

from .types import SPECIFIERS

NAME_IT = "name the outcome of the co_await first: auto x = co_await ...;"
# Calls that return a reference, a pointer or a number wherever they are a member or function of that name.
PLAIN_CALLS = set("""move forward as_const addressof get at front back value error size data empty count length begin
    end c_str load exchange static_cast reinterpret_cast const_cast dynamic_cast min max has_value native_handle
    is_open to_underlying sizeof alignof decltype""".split())
ASSIGNMENTS = set("= += -= *= /= %= &= |= ^= <<=".split())
NUMBERS = set("size length count empty index use_count native_handle port".split())
OWNERS = {"move", "make_unique", "make_shared", "string", "to_string", "vector"}


def copied(words):
    """What a copy of something of that type is: T of const T&."""
    return [word for word in words if word not in SPECIFIERS and word not in ("&", "&&")]


class Shapes:
    def __init__(self, types, report):
        self.types, self.tell = types, report  # report(token, text)

    def read_by(self, reader):
        self.reader, self.code = reader, reader.code

    def report(self, index, message):
        self.tell(self.code.tokens[index], message)

    def condition(self, index, keyword):
        self.report(index, f"co_await in the condition of {keyword}, in a function that declares nothing: its outcome "
                           "is lost while it waits; write auto x = co_await ...; before")

    def skipped_condition(self, index):
        self.report(index, "this continue skips the condition of the do loop, which has a co_await; write while "
                           "(true), and name the outcome of the co_await")

    def expression(self, expression, waits):
        if not waits:
            return
        self.is_bool = (expression.stands_in in ("if", "statement")
                        or (expression.type is not None and {"bool", "auto"} & set(expression.type)))
        if expression.type is not None and self.code.words[expression.begin] == "{":
            self.initialiser(expression)
        else:
            self.operators(expression.begin, expression.end, self.is_bool)
        for index in self.code.own(expression.begin, expression.end):
            if index in self.code.closures:
                self.closure(self.code.closures[index])
            elif self.code.words[index] == "{" and not (index == expression.begin and expression.type):
                self.braces(index)
            elif self.code.words[index] == "(":
                self.parentheses(index)

    def initialiser(self, expression):
        """Of T x{...}, with a co_await inside."""
        code, opening = self.code, expression.begin
        parts = list(code.split(opening + 1, code.ends[opening]))
        words = [word for word in expression.type if word not in SPECIFIERS]
        if words and words[-1] == "[]":
            is_wrong = self.types.is_trivial(words[:-1]) is not True
        else:
            is_wrong = self.types.is_dangerous(words)
            if is_wrong is None:
                is_wrong = len(parts) > 1 or code.words[opening + 1] == "."
        if is_wrong:
            self.report(opening, "co_await inside the braces of an aggregate: its members are destroyed twice; "
                                 + NAME_IT)
        for begin, end in parts:
            self.operators(begin, end, "bool" in words)

    # ---- ?:, && and ||

    def operators(self, begin, end, is_bool, is_left=False):
        """Looks at the operators of a range, from the one that binds least. is_bool: whether its outcome is
        taken as a bool at once, where && and || are right. is_left: whether it is on the left of one."""
        code = self.code
        while begin < end and (code.words[begin] == "!" or code.words[begin:begin + 3] == ["(", "void", ")"]):
            begin += 1 if code.words[begin] == "!" else 3
        if begin >= end:
            return
        if code.words[begin] == "(" and code.ends[begin] == end - 1:
            self.operators(begin + 1, end - 1, is_bool, is_left)
            return
        level = [index for index in code.level(begin, end) if code.tokens[index].kind == "sign"]
        words = {code.words[index]: index for index in reversed(level)}  # the first of each
        last = {code.words[index]: index for index in level}
        assigned = [index for index in level if code.words[index] in ASSIGNMENTS and code.ends_operand(index - 1)]
        if "," in words:
            for part in code.split(begin, end):
                self.operators(*part, False)
        elif assigned:
            at = assigned[0]
            type_ = self.reader.type_of(code.words[at - 1], at) if at - begin == 1 else None
            self.operators(begin, at, False)
            self.operators(at + 1, end, code.words[at] == "=" and type_ is not None and "bool" in type_)
        elif "?" in words:
            self.conditional(begin, words["?"], end, is_bool)
        elif "||" in words or self.logical_and(level):
            at = last["||"] if "||" in words else self.logical_and(level)[-1]
            if code.waits(at + 1, end):
                if not is_bool or is_left:
                    self.report(at, f"co_await behind {code.words[at]} runs whatever stands before it; name its "
                                    "outcome first, or make it the last operand of an if condition or of a bool")
                    is_bool = True  # Once is enough.
            elif self.makes_temporary(at + 1, end):
                self.report(at, f"the temporary behind {code.words[at]} is made whatever stands before it, as the "
                                f"expression has a co_await; {NAME_IT}")
            self.operators(begin, at, is_bool, is_left=True)
            self.operators(at + 1, end, is_bool, is_left)
        else:
            for index in list(code.level(begin, end)):
                closing = code.closures[index].captures_end if index in code.closures else code.ends.get(index)
                if closing and code.words[index] != "<":
                    self.operators(index + 1, closing, False)

    def logical_and(self, level):
        return [index for index in level if self.code.words[index] == "&&" and self.code.ends_operand(index - 1)]

    def conditional(self, begin, question, end, is_bool):
        code, colon, depth = self.code, None, 0
        for index in code.level(question + 1, end):
            depth += (code.words[index] == "?") - (code.words[index] == ":")
            if depth < 0:
                colon = index
                break
        if colon is None:
            return
        arms = [(question + 1, colon), (colon + 1, end)]
        if any(start >= stop for start, stop in arms):
            return
        self.operators(begin, question, True)
        if any(code.waits(*arm) for arm in arms):
            self.report(question, "co_await in an arm of ?: runs, or is destroyed twice, whichever way the condition "
                                  "goes; write if and else")
            return
        is_number = any(code.tokens[start].kind == "number" or code.words[start] in ("true", "false", "nullptr", "-")
                        or (code.words[start][0] == "'") for start, _ in arms)
        texts = [code.words[start].endswith('"') and stop - start == 1 for start, stop in arms]
        if texts[0] != texts[1] or any(self.makes_temporary(*arm, of_any_call=not is_number) for arm in arms):
            self.report(question, "?: with a temporary in its arms, beside a co_await: the temporary is made, or "
                                  f"destroyed twice, whichever way the condition goes; {NAME_IT}")
        for arm in arms:
            self.operators(*arm, False)

    def makes_temporary(self, begin, end, of_any_call=False):
        """Whether there may be an object of a class without a name: by braces, or by a call whose result is
        used as an object, or is an argument."""
        code = self.code
        for index in code.own(begin, end):
            word = code.words[index]
            if word == "{":
                words = self.type_before(index)
                if not words or self.types.is_trivial(words) is not True:
                    return True
            if word == "(" and code.ends_operand(index - 1):
                name = index - 1
                if not code.is_name(name) or code.words[name] in PLAIN_CALLS:
                    continue
                makes_object = self.types.returns_object(code.words[name])
                if makes_object is not None:
                    if makes_object:
                        return True
                    continue
                is_member_of = code.word(code.ends[index] + 1) in (".", "->", "[")
                is_argument = any(code.words[each] == "(" and code.ends_operand(each - 1) and code.ends[each] > index
                                  and code.words[each - 1] not in PLAIN_CALLS for each in range(begin, index))
                if of_any_call or is_member_of or is_argument:
                    return True
        return False

    # ---- closures and aggregates

    def closure(self, closure):
        if any(self.is_risky_capture(*capture)
               for capture in self.code.split(closure.begin + 1, closure.captures_end)):
            self.report(closure.begin, "the captures of this closure are destroyed twice if they have destructors, as "
                                       "the expression has a co_await; name the closure first: auto f = [...] ...;")

    def is_risky_capture(self, begin, end):
        code, words = self.code, self.code.words[begin:end]
        if not words or words[0] == "&" or words[-1] == "=" != words[0] or words == ["this"]:
            return False
        if words[1:2] == ["="]:  # [x = 5], [x = y], [x = &y], [n = text.size()]
            value = begin + 2
            if words[2] == "&" or (words[-2:] == ["(", ")"] and words[-3] in NUMBERS):
                return False
        else:
            value = begin
        if end - value != 1 or not code.is_name(value):
            is_text = code.tokens[value].kind == "text" and code.words[value][-1] in "\"'"
            return not (end - value == 1 and (is_text or code.tokens[value].kind == "number"
                                              or code.words[value] in ("true", "false", "nullptr", "this")))
        type_ = self.reader.type_of(code.words[value], begin)
        return type_ is None or self.types.is_trivial(copied(type_)) is not True

    def type_before(self, index):
        """The tokens of T in T{ and T(; none if there is no name."""
        code, begin = self.code, index
        while begin > 0:
            before = begin - 1
            if code.words[before] == ">":
                if before not in code.templates:
                    break
                begin = code.templates[before]
            elif code.words[before] == "::":
                begin = before
            elif code.is_name(before) and (begin == index or code.words[begin] in ("::", "<")):
                begin = before
            else:
                break
        return code.words[begin:index]

    def braces(self, opening):
        """Of T{...}, and of {...} as an argument."""
        code, closing = self.code, self.code.ends[opening]
        words, inside = self.type_before(opening), code.words[opening + 1:closing]
        parts = list(code.split(opening + 1, closing))
        fields = {code.words[begin + 1] for begin, _ in parts if code.words[begin] == "."}
        if words:
            is_wrong = self.types.is_dangerous(words)
            is_wrong = bool(fields) if is_wrong is None else is_wrong
        elif code.word(opening - 1) not in ("(", ",", "=", "co_return", "return"):
            return
        else:
            type_ = self.parameter(opening)
            is_wrong = None
            if type_ is not None:
                is_wrong = self.types.is_dangerous(copied(type_))
            elif fields:
                is_wrong = self.types.is_dangerous_with(fields)
            if is_wrong is None:
                is_wrong = bool(OWNERS & set(inside)) or (len(parts) > 1 and bool(code.waits(opening + 1, closing)))
        if is_wrong:
            self.aggregate(opening)

    def parentheses(self, opening):
        """Of T(a, b), which makes an aggregate as T{a, b} does."""
        code, words = self.code, self.type_before(opening)
        arguments = list(code.split(opening + 1, code.ends[opening]))
        if not words:
            return
        if words[-1] in self.types.known and self.types.is_dangerous(words) and len(arguments) > 1:
            self.aggregate(opening)
        signatures = self.types.functions.get(words[-1], ())
        if len(signatures) == 1:  # No overloads to choose from.
            for type_, default in signatures[0].parameters[len(arguments):]:
                if default and self.is_dangerous_default(type_, default):
                    self.report(opening - 1, "a default argument with destructors is destroyed twice, as the "
                                             "expression has a co_await; name it, and pass the name")

    def is_dangerous_default(self, type_, default):
        if default[0] == "{":
            return self.types.is_dangerous(copied(type_))
        if default[0] == "[":
            return default[1:2] not in (["]"], ["&"])
        return "{" in default and self.types.is_dangerous(default[:default.index("{")])

    def parameter(self, opening):
        """The type of the parameter for the braces that begin there; None if it is not known."""
        code = self.code
        call = max((index for index, end in code.ends.items()
                    if index < opening < end and code.words[index] in "([{"), default=None)
        if call is None or code.words[call] != "(" or not code.is_name(call - 1):
            return None
        arguments = [begin for begin, _ in code.split(call + 1, code.ends[call])]
        if opening not in arguments:  # f(x = {...})
            return None
        at = arguments.index(opening)
        types = [each.parameters[at][0] for each in self.types.functions.get(code.words[call - 1], ())
                 if at < len(each.parameters)]
        return types[0] if len(types) == 1 else None

    def aggregate(self, opening):
        self.report(opening, "the members of this aggregate are destroyed twice, as the expression has a co_await; "
                             "name it first: T x{...};")
