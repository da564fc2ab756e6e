"""The expressions that GCC 12 miscompiles. docs/usage/gcc-12.md lists them all, with the correct forms."""

from .types import SPECIFIERS, arguments_of

NAME_IT = "name the result of the co_await first: auto x = co_await ...;"
# Names of functions and members that always return a reference, a pointer or a number.
PLAIN_CALLS = set("""move forward as_const addressof get at front back value error size data empty count length begin
    end c_str load exchange static_cast reinterpret_cast const_cast dynamic_cast min max has_value native_handle
    is_open to_underlying sizeof alignof decltype""".split())
ASSIGNMENTS = set("= += -= *= /= %= &= |= ^= <<=".split())
OPERATORS = set("+ - * / % & | ^ ~".split())
CASTS_TO_VOID = [["!"], ["(", "void", ")"], ["static_cast", "<", "void", ">"]]
NUMBERS = set("size length count empty index use_count native_handle port".split())
OWNERS = {"move", "make_unique", "make_shared", "string", "to_string", "vector"}


def copied(words):
    """The type of a copy: T for const T&."""
    return [word for word in words if word not in SPECIFIERS and word not in ("&", "&&")]


def takes(signature, count):
    """Whether a function may be called with that many arguments."""
    return all(default or "..." in type_ for type_, default in signature.parameters[count:]) and (
        count <= len(signature.parameters) or "..." in signature.parameters[-1][0])


class Shapes:
    def __init__(self, types, report):
        self.types, self.tell = types, report  # report(token, text)

    def read_by(self, reader):
        self.reader, self.code = reader, reader.code

    def report(self, index, message):
        self.tell(self.code.tokens[index], message)

    def condition(self, index, keyword):
        self.report(index, f"co_await in the condition of {keyword}, in a function that declares nothing: its result "
                           "is lost while it waits; write auto x = co_await ...; before")

    def skipped_condition(self, index):
        self.report(index, "this continue skips the condition of the do loop, which has a co_await; write while "
                           "(true), and name the result of the co_await")

    def expression(self, expression, waits):
        if not waits:
            return
        if expression.type is not None and self.code.words[expression.begin] == "{":
            self.initialiser(expression)
        else:
            taken = self.taken_as(expression.type) if expression.type is not None else expression.stands_in
            self.operators(expression.begin, expression.end, taken)
        for index in self.code.own(expression.begin, expression.end):
            if index in self.code.closures:
                self.closure(self.code.closures[index])
            elif self.code.words[index] == "{" and not (index == expression.begin and expression.type):
                self.braces(index)
            elif self.code.words[index] == "(":
                self.parentheses(index)

    def taken_as(self, words):
        """The type of object that the expression initialises or is assigned to."""
        words = copied(words)
        if words in (["bool"], ["auto"]):
            return words[0]
        return "number" if words and self.types.is_object(words) is False else ""

    def initialiser(self, expression):
        """Checks T x{...} with a co_await inside."""
        code, opening = self.code, expression.begin
        parts = list(code.split(opening + 1, code.ends[opening]))
        words = [word for word in expression.type if word not in SPECIFIERS]
        if words and words[-1] == "[]":
            is_wrong = self.types.is_trivial(words[:-1]) is not True
            words.pop()
        else:
            is_wrong = self.types.is_dangerous(words)
            if is_wrong is None:
                is_wrong = code.words[opening + 1] == "."
        if is_wrong:
            self.report(opening, "co_await inside the braces of an aggregate: its members are destroyed twice; "
                                 + NAME_IT)
        for begin, end in parts:
            self.operators(begin, end, self.taken_as(words))

    def range_list(self, opening, words):
        """Checks for (T x : {...}) with a co_await inside."""
        parts = list(self.code.split(opening + 1, self.code.ends[opening]))
        is_number = any(self.is_scalar(*part) for part in parts)
        if not is_number and self.types.is_trivial(copied(words)) is not True:
            self.report(opening, "the elements of this list are destroyed twice if they have destructors, as it has a "
                                 "co_await; name the list first")

    # ---- ?:, && and ||

    def operators(self, begin, end, taken, is_left=False):
        """Checks the operators of a range, starting with the one that binds least. taken: the use of the
        result, which makes some forms correct: "if", "switch", "statement", "bool", "auto", "number",
        "condition" of ?: or "awaitable". is_left: whether the range is on the left of && or ||."""
        code = self.code
        while begin < end:
            cast = next((each for each in CASTS_TO_VOID if code.words[begin:begin + len(each)] == each), None)
            if not cast:
                break
            begin += len(cast)
            taken = "" if cast == ["!"] and taken == "number" else taken
        if begin >= end:
            return
        if code.words[begin] == "(" and code.ends[begin] == end - 1:
            self.operators(begin + 1, end - 1, taken, is_left)
            return
        level = [index for index in code.level(begin, end) if code.tokens[index].kind == "sign"]
        words = {code.words[index]: index for index in reversed(level)}  # the first of each
        last = {code.words[index]: index for index in level}
        assigned = [index for index in level if code.words[index] in ASSIGNMENTS and code.ends_operand(index - 1)]
        if "," in words:
            for part in code.split(begin, end):
                self.operators(*part, taken if part[1] == end and taken != "statement" else "")
        elif assigned:
            at = assigned[0]
            self.operators(begin, at, "")
            self.operators(at + 1, end, self.assigned_as(begin, at) if code.words[at] == "=" else "")
        elif "?" in words:
            self.conditional(begin, words["?"], end, "" if is_left else taken)
        elif "||" in words or self.logical_and(level):
            at = last["||"] if "||" in words else self.logical_and(level)[-1]
            if taken == "awaitable":  # co_await (a() || b()): of classes that have an operator
                pass
            elif code.waits(at + 1, end):
                if taken not in ("if", "statement", "bool", "auto", "condition") or is_left:
                    self.report(at, f"co_await behind {code.words[at]} runs whatever its left operand is; name its "
                                    "result first, or make it the last operand of an if condition or of a bool")
                    taken = "if"  # One report is enough.
            elif self.makes_temporary(at + 1, end):
                self.report(at, f"the temporary behind {code.words[at]} is made whatever the left operand is, as the "
                                f"expression has a co_await; {NAME_IT}")
            self.operators(begin, at, taken, is_left=True)
            self.operators(at + 1, end, taken, is_left)
        else:
            for index in list(code.level(begin, end)):
                closing = code.closures[index].captures_end if index in code.closures else code.ends.get(index)
                if closing and code.words[index] != "<":
                    awaited = code.words[index] == "(" and code.word(index - 1) == "co_await"
                    self.operators(index + 1, closing, "awaitable" if awaited else "")

    def assigned_as(self, begin, end):
        """The use of the right side in x = , x.y = or this->y =."""
        code, name = self.code, self.code.words[end - 1]
        type_ = None
        if end - begin == 1:
            type_ = self.reader.type_of(name, end)
        elif end - begin == 3 and code.words[begin + 1] in (".", "->"):
            of = code.words[begin]
            owner = [self.reader.class_at(begin)] if of == "this" else self.reader.type_of(of, begin)
            known = self.types.class_of(owner) if owner else None
            type_ = dict(known.members).get(name) if known else None
        return self.taken_as(type_) if type_ else ""

    def logical_and(self, level):
        return [index for index in level if self.code.words[index] == "&&" and self.code.ends_operand(index - 1)]

    def conditional(self, begin, question, end, taken):
        code, colon, depth = self.code, None, 0
        for index in code.level(question + 1, end):
            depth += (code.words[index] == "?") - (code.words[index] == ":")
            if depth < 0:
                colon = index
                break
        if colon is None or colon + 1 >= end:
            return
        arms = [(start, stop) for start, stop in ((question + 1, colon), (colon + 1, end)) if start < stop]
        self.operators(begin, question, "condition")
        if any(code.waits(*arm) for arm in arms):
            if not self.may_wait_in(arms, taken):
                self.report(question, "co_await in an arm of ?: runs, or is destroyed twice, whatever the "
                                      "condition is; write if and else")
                return
        else:
            is_number = any(self.is_number(*arm) for arm in arms)
            texts = {code.words[start].endswith('"') and stop - start == 1 for start, stop in arms}
            if len(texts) == 2 or any(self.makes_temporary(*arm, of_any_call=not is_number) for arm in arms):
                self.report(question, "?: with a temporary in its arms, beside a co_await: the temporary is made, or "
                                      f"destroyed twice, whatever the condition is; {NAME_IT}")
        for arm in arms:
            self.operators(*arm, taken if "?" in code.words[slice(*arm)] else "")

    def may_wait_in(self, arms, taken):
        """Whether a co_await is correct in the arms: if the result becomes a number at once, nothing has to be
        kept."""
        if taken == "number":
            return True
        if len(arms) == 1:  # a ?: co_await b()
            return False
        is_nested = any("?" in self.code.words[slice(*arm)] for arm in arms)
        if taken == "bool":
            return not is_nested
        return taken in ("if", "switch", "statement", "auto") and all(self.is_scalar(*arm) for arm in arms)

    def is_scalar(self, begin, end):
        """Whether an arm is known to be a number, a pointer or nothing."""
        code = self.code
        while code.words[begin] == "(" and code.ends[begin] == end - 1 and begin + 1 < end - 1:
            begin, end = begin + 1, end - 1
        level = list(code.level(begin, end))
        if any(code.words[index] == "?" for index in level):
            parts = [index for index in level if code.words[index] in "?:"]
            return all(self.is_scalar(start + 1, stop) for start, stop in zip(parts, [*parts[1:], end])
                       if start + 1 < stop)
        if code.words[begin] in ("throw", "!") or code.words[begin:begin + 3] == ["(", "void", ")"]:
            return True
        if self.is_number(begin, end):
            return True
        name = (code.parents[end - 1] or 0) - 1
        if code.words[begin] != "co_await" or code.words[end - 1] != ")" or not code.is_name(name):
            return False
        results = [each.result for each in self.reader.signatures_of(name)]
        return bool(results) and all(self.is_scalar_outcome(result) for result in results)

    def is_scalar_outcome(self, words):
        """The same for the result of awaiting a task<T>."""
        arguments = arguments_of(words)
        if not arguments:
            return words[-2:] == ["<", ">"]
        return len(arguments) == 1 and self.types.is_object(arguments[0]) is False

    def is_number(self, begin, end):
        """Whether the range is 3, -1, true, 'x' or the like, or a variable of such a type."""
        code = self.code
        if code.words[begin] in ("true", "false", "nullptr", "-") or code.words[begin][0] == "'":
            return True
        if code.tokens[begin].kind == "number":
            return True
        type_ = self.reader.type_of(code.words[begin], begin) if end - begin == 1 and code.is_name(begin) else None
        return type_ is not None and self.types.is_object(copied(type_)) is False

    def makes_temporary(self, begin, end, of_any_call=False):
        """Whether there may be an unnamed object of a class: from braces, from an operator, or from a call
        whose result is used as an object or is an argument."""
        code = self.code
        for index in code.own(begin, end):
            word = code.words[index]
            if word == "{":
                words = self.type_before(index)
                if not words or self.types.is_trivial(words) is not True:
                    return True
            if word in OPERATORS and self.makes_object(index):
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

    def makes_object(self, index):
        """Whether an operator such as + has a class object or a text as an operand."""
        code = self.code
        is_binary = code.ends_operand(index - 1)
        if not is_binary and code.words[index] not in ("-", "+", "~"):
            return False  # *p, &x
        operands = [index - 1] if is_binary and code.word(index - 2) not in (".", "->", "::") else []
        if code.word(index + 2) not in (".", "->", "::", "(", "[", "<", "{"):
            operands.append(index + 1)
        for each in operands:
            if code.words[index] == "+" and is_binary and code.word(each).endswith('"'):
                return True
            type_ = self.reader.type_of(code.word(each), index) if code.is_name(each) else None
            if type_ and self.types.has_operators(copied(type_)):
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
        if words == ["*", "this"]:
            return self.types.is_trivial([self.reader.class_at(begin)]) is not True
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
        """The tokens of T in T{ and T(; empty if there is no name."""
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
        """Checks T{...}, and {...} as an argument."""
        code, closing = self.code, self.code.ends[opening]
        words, inside = self.type_before(opening), code.words[opening + 1:closing]
        parts = list(code.split(opening + 1, closing))
        fields = {code.words[begin + 1] for begin, _ in parts if code.words[begin] == "."}
        before = code.word(opening - 1)
        if words:
            is_wrong = self.types.is_dangerous(words)
            is_wrong = bool(fields) if is_wrong is None else is_wrong
            if words[-1] == "array":
                is_wrong = any(self.has_destructor(*part) for part in parts)
            elif is_wrong and len(parts) == 1:
                is_wrong = not self.is_copied(words, *parts[0])
        elif before == "{":  # T{{...}}
            is_wrong = self.parameter_is_dangerous(opening)
        elif before not in ("(", ",", "=", "co_return", "return"):
            return
        else:
            is_wrong = self.parameter_is_dangerous(opening)
            if is_wrong is None and fields:
                is_wrong = self.types.is_dangerous_with(fields)
            if is_wrong is None:
                is_wrong = bool(OWNERS & set(inside)) or (len(parts) > 1 and bool(code.waits(opening + 1, closing)))
        if is_wrong:
            self.aggregate(opening)

    def value_type(self, begin, end):
        """The type of a variable, or of a moved variable; None if it is unknown."""
        code = self.code
        if code.words[end - 1] == ")" and end - begin > 3 and code.words[end - 4:end - 2] == ["move", "("]:
            begin, end = end - 2, end - 1
        type_ = self.reader.type_of(code.words[begin], begin) if end - begin == 1 and code.is_name(begin) else None
        return copied(type_) if type_ else None

    def is_copied(self, words, begin, end):
        """Whether T{x} or T(x) is known to copy or move a T."""
        type_ = self.value_type(begin, end)
        return type_ is not None and self.types.resolved(type_) == self.types.resolved(words)

    def has_destructor(self, begin, end):
        """Whether an expression is known to be of such a class: x, std::move(x), std::string{...}."""
        type_ = self.value_type(begin, end)
        if type_ is None and self.code.words[end - 1] in (")", "}") and self.code.parents[end - 1]:
            type_ = self.type_before(self.code.parents[end - 1])
        return bool(type_) and self.types.is_trivial(type_) is False

    def parentheses(self, opening):
        """Checks T(a, b), which initialises an aggregate like T{a, b}, and default arguments."""
        code, words = self.code, self.type_before(opening)
        arguments = list(code.split(opening + 1, code.ends[opening]))
        if not words:
            return
        if words[-1] not in self.types.functions and arguments and self.types.is_dangerous(words):
            begin, end = arguments[0]
            if len(arguments) > 1 or (not self.is_copied(words, begin, end) and (
                    code.words[begin].endswith('"') or self.has_destructor(begin, end))):
                self.aggregate(opening)
        signatures = self.reader.signatures_of(opening - 1) if code.is_name(opening - 1) else ()
        if len(signatures) == 1:  # no overloads to choose from
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

    def parameter_is_dangerous(self, opening):
        """Whether the braces that begin there make such an aggregate as an argument or an assigned value; None
        if that is unknown."""
        code, call = self.code, self.code.parents[opening]
        if code.word(opening - 1) == "=":
            type_ = self.value_type(opening - 2, opening - 1)
            return self.types.is_dangerous(type_) if type_ else None
        name = self.called(call) if call is not None else None
        if name is None:
            return None
        arguments = [begin for begin, _ in code.split(call + 1, code.ends[call])]
        if opening not in arguments:
            return None
        at = arguments.index(opening)
        if code.word(name - 1) in (".", "->"):
            type_ = self.value_type(name - 2, name - 1)
            element = self.types.element(type_) if type_ else None
            if element:
                return self.types.is_dangerous(element)
        signatures = (self.types.constructors(code.words[name]) if code.words[call] == "{"
                      else self.reader.signatures_of(name))
        types = [copied(each.parameters[at][0]) for each in signatures
                 if at < len(each.parameters) and takes(each, len(arguments))]
        parts = list(code.split(opening + 1, code.ends[opening]))
        verdicts = {self.types.is_dangerous(each) for each in types
                    if len(parts) < 2 or self.types.is_object(each) is not False}
        return verdicts.pop() if len(verdicts) == 1 else None

    def called(self, opening):
        """The index of the name of the function called with ( or {; None if there is none."""
        code, name = self.code, opening - 1
        if name in code.templates:
            name = code.templates[name] - 1
        return name if code.words[opening] in "({" and code.is_name(name) else None

    def aggregate(self, opening):
        self.report(opening, "the members of this aggregate are destroyed twice, as the expression has a co_await; "
                             "name it first: T x{...};")
