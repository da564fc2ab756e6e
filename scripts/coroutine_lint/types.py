"""What is known of classes, by the last part of their name. A type is the list of its tokens."""

import collections

Signature = collections.namedtuple("Signature", "result parameters")  # parameters: (type, tokens of its default)

BUILT_IN = set("""void bool char short int long unsigned signed float double wchar_t char8_t char16_t char32_t
    """.split())
# Of the standard library: without a destructor to run; with one; or as their arguments.
NUMBERS = BUILT_IN | set("""byte size_t ssize_t ptrdiff_t nullptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t
    uint32_t uint64_t uintptr_t intptr_t time_t pid_t errc""".split())
PLAIN = NUMBERS | set("""string_view span chrono duration time_point nanoseconds
    microseconds milliseconds seconds minutes hours error_code error_condition coroutine_handle source_location
    atomic monostate reference_wrapper sockaddr_storage in_addr nullopt_t strong_ordering""".split())
OWNING = set("""string vector deque list map set multimap multiset unordered_map unordered_set unique_ptr shared_ptr
    weak_ptr function move_only_function any exception_ptr thread jthread stop_token stop_source""".split())
OF_ARGUMENTS = set("array optional pair tuple variant expected result".split())

CLASS_KEYS = {"struct", "class", "union", "enum"}
SPECIFIERS = set("""const volatile static constexpr inline mutable typename thread_local constinit extern register
    friend explicit virtual consteval""".split())


def head(words):
    """std::vector of std::vector<int>."""
    return words[:words.index("<")] if "<" in words else words


def split(words):
    """The parts between commas."""
    parts, depth = [[]], 0
    for word in words:
        depth += (word in "(<[{") - (word in ")>]}")
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def all_of(verdicts):
    """False if one is, else None if one is."""
    verdicts = list(verdicts)
    return False if False in verdicts else None if None in verdicts else True


class Types:
    def __init__(self):
        self.enums = set()
        self.known = {}    # name -> (can be an aggregate, types of members, names of members)
        self.aliases = {}  # name -> type
        self.functions = {}  # name -> [Signature]

    def add(self, name, is_aggregate=False, members=(), fields=()):
        before = self.known.get(name, (False, [], set()))
        self.known[name] = (is_aggregate or before[0], before[1] + list(members), before[2] | set(fields))

    def add_function(self, name, result, parameters):
        signature = Signature(result, parameters)
        if signature not in self.functions.setdefault(name, []):
            self.functions[name].append(signature)

    def returns_object(self, name):
        """Whether a call of that name makes an object of a class; None if it is not known, or depends."""
        if name in self.known and self.known[name][1:] != ([], set()):
            return True
        verdicts = {self.is_object(each.result) for each in self.functions.get(name, ())}
        return verdicts.pop() if len(verdicts) == 1 else None

    def is_object(self, words):
        words = [word for word in words if word not in SPECIFIERS and word not in CLASS_KEYS]
        if not words or "auto" in words or "decltype" in words:
            return None
        name = head(words)[-1] if head(words) else ""
        if words[-1] in ("*", "&", "&&") or set(head(words)) & NUMBERS or name in self.enums:
            return False
        if name in self.aliases and self.aliases[name] != words:
            return self.is_object(self.aliases[name])
        return True if name in self.known or name in OWNING | PLAIN | OF_ARGUMENTS else None

    def add_alias(self, name, words):
        self.aliases[name] = words

    def is_trivial(self, words, inside=()):
        """Whether it has no destructor to run; None if that is not known."""
        words = [word for word in words if word not in SPECIFIERS and word not in CLASS_KEYS]
        if not words:
            return None
        if words[-1] in ("*", "&", "&&"):
            return True
        name = head(words)[-1] if head(words) else ""
        if name in self.known and name not in inside:
            return all_of(self.is_trivial(member, (*inside, name)) for member in self.known[name][1])
        if name in self.aliases and name not in inside:
            return self.is_trivial(self.aliases[name], (*inside, name))
        if name in OF_ARGUMENTS:
            arguments = [part for part in split(words[len(head(words)) + 1:-1]) if not part[0][0].isdigit()]
            return all_of(self.is_trivial(part, inside) for part in arguments) if arguments else None
        if name in OWNING:
            return False
        return True if any(word in PLAIN for word in head(words)) else None

    def is_dangerous(self, words):
        """Whether T{...} is an aggregate with destructors to run; None if T is not known."""
        name = head(words)[-1] if head(words) else ""
        if name == "array":
            return self.is_trivial(words) is False
        if name in self.known:
            return self.known[name][0] and self.is_trivial([name]) is not True
        if name in self.aliases and self.aliases[name] and head(self.aliases[name])[-1] != name:
            return self.is_dangerous(self.aliases[name])
        return False if name in OWNING | PLAIN | OF_ARGUMENTS else None

    def is_dangerous_with(self, fields):
        """The same of {.field = ...} for a parameter of some type."""
        fitting = [name for name, (is_aggregate, _, names) in self.known.items()
                   if is_aggregate and fields <= names]
        return all(self.is_trivial([name]) is not True for name in fitting) if fitting else None
