"""What is known about classes, by the last part of their name. A type is the list of its tokens."""

import collections

Signature = collections.namedtuple("Signature", "result parameters")  # parameters: (type, tokens of its default)

BUILT_IN = set("""void bool char short int long unsigned signed float double wchar_t char8_t char16_t char32_t
    """.split())
# Classes of the standard library: without a destructor to run; with one; or depending on their arguments.
NUMBERS = BUILT_IN | set("""byte size_t ssize_t ptrdiff_t nullptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t
    uint32_t uint64_t uintptr_t intptr_t time_t pid_t errc""".split())
PLAIN = NUMBERS | set("""string_view span chrono duration time_point nanoseconds
    microseconds milliseconds seconds minutes hours error_code error_condition coroutine_handle source_location
    atomic monostate reference_wrapper sockaddr_storage in_addr nullopt_t strong_ordering""".split())
OWNING = set("""string vector deque list map set multimap multiset unordered_map unordered_set unique_ptr shared_ptr
    weak_ptr function move_only_function any exception_ptr thread jthread stop_token stop_source""".split())
POLYMORPHIC = set("""exception runtime_error logic_error system_error bad_alloc invalid_argument out_of_range
    domain_error length_error range_error error_category memory_resource streambuf""".split())
SEQUENCES = set("vector deque list set multiset unordered_set".split())
MAPS = set("map multimap unordered_map".split())
OF_ARGUMENTS = set("array optional pair tuple variant expected result".split())

CLASS_KEYS = {"struct", "class", "union", "enum"}
SPECIFIERS = set("""const volatile static constexpr inline mutable typename thread_local constinit extern register
    friend explicit virtual consteval""".split())


def head(words):
    """The part before the <: std::vector of std::vector<int>."""
    return words[:words.index("<")] if "<" in words else words


def name_of(words):
    """The last word before the <: vector of const std::vector<int>."""
    return head(words)[-1] if head(words) else ""


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


def arguments_of(words):
    """The arguments of a template."""
    return split(words[len(head(words)) + 1:-1]) if words and words[-1] == ">" else []


def substitute(words, arguments):
    """The type with the arguments in place of the parameters' names."""
    return [each for word in words for each in arguments.get(word, [word])]


def all_of(verdicts):
    """False if one is False, else None if one is None."""
    verdicts = list(verdicts)
    return False if False in verdicts else None if None in verdicts else True


def plain(words):
    """The type without const, static and struct."""
    return [word for word in words if word not in SPECIFIERS and word not in CLASS_KEYS]


class Class:
    """All classes of one name: the lint does not tell them apart."""

    def __init__(self):
        self.is_polymorphic = False
        self.can_be_aggregates = set()  # of each class
        self.parameters = []        # of a template
        self.members, self.bases = [], []  # (name, type); type
        self.constructors, self.calls = [], []  # Signature; the calls are operator()


def add(entries, more):
    entries += [each for each in more if each not in entries]


class Types:
    def __init__(self):
        self.enums = set()
        self.known = {}    # name -> Class
        self.aliases = {}  # name -> (type, names of parameters)
        self.functions = {}  # name -> [Signature]

    def add(self, name, parameters=()):
        known = self.known.setdefault(name, Class())
        known.parameters = known.parameters or list(parameters)

    def add_members(self, name, is_aggregate, members, bases, is_polymorphic):
        known = self.known[name]
        known.can_be_aggregates.add(is_aggregate)
        known.is_polymorphic = known.is_polymorphic or is_polymorphic
        add(known.members, members)
        add(known.bases, bases)

    def add_constructor(self, name, parameters):
        add(self.known[name].constructors, [Signature((), parameters)])

    def add_call(self, name, parameters):
        add(self.known[name].calls, [Signature((), parameters)])

    def add_function(self, name, result, parameters):
        add(self.functions.setdefault(name, []), [Signature(result, parameters)])

    def add_alias(self, name, words, parameters=()):
        self.aliases[name] = (words, list(parameters))

    def resolved(self, words):
        """The type that an alias refers to, without const and the like."""
        words, seen = plain(words), set()
        while name_of(words) in self.aliases and name_of(words) not in seen | set(self.known):
            seen.add(name_of(words))
            meant, parameters = self.aliases[name_of(words)]
            end = len(words) if words[-1] in ("*", "&", "&&") else None
            behind = words[-1:] if end else []
            words = plain(substitute(meant, dict(zip(parameters, arguments_of(words))))) + behind
        return words

    def class_of(self, words):
        return self.known.get(name_of([word for word in self.resolved(words) if word not in ("*", "&", "&&")]))

    def element(self, words):
        """The element type of a container; None if it is not a container."""
        words = self.resolved(words)
        name, arguments = name_of(words), arguments_of(words)
        if not arguments or name not in SEQUENCES | MAPS:
            return None
        return ["pair", "<", *arguments[0], ">"] if name in MAPS else arguments[0]

    def members(self, name):
        return self.known[name].members if name in self.known else []

    def member(self, class_name, field):
        return dict(self.members(class_name)).get(field)

    def constructors(self, name):
        return self.known[name].constructors if name in self.known else []

    def calls(self, words):
        known = self.class_of(words)
        return known.calls if known else []

    def returns_object(self, name):
        """Whether a call of that name returns an object of a class; None if it is unknown, or depends."""
        if name in self.known and (self.known[name].members or self.known[name].bases):
            return True
        verdicts = {self.is_object(each.result) for each in self.functions.get(name, ())}
        return verdicts.pop() if len(verdicts) == 1 else None

    def is_object(self, words):
        words = self.resolved(words)
        if not words or "auto" in words or "decltype" in words:
            return None
        name = name_of(words)
        if words[-1] in ("*", "&", "&&") or set(head(words)) & NUMBERS or name in self.enums:
            return False
        return True if name in self.known or name in OWNING | PLAIN | OF_ARGUMENTS else None

    def has_operators(self, words):
        """Whether + of such objects returns an object of a class that is not one of the standard's plain
        ones."""
        words = [word for word in self.resolved(words) if word not in ("&", "&&")]
        return bool(self.is_object(words)) and (name_of(words) in self.known or self.is_trivial(words) is False)

    def is_trivial(self, words, inside=()):
        """Whether it has no destructor to run; None if that is unknown."""
        words = self.resolved(words)
        if not words:
            return None
        if words[-1] in ("*", "&", "&&"):
            return True
        name = name_of(words)
        if name in self.enums:
            return True
        if name in inside:
            return True  # A class with a member of its own name: another one, whose members are being checked.
        if name in self.known:
            known = self.known[name]
            arguments = dict(zip(known.parameters, arguments_of(words)))
            types = [type_ for _, type_ in known.members] + known.bases
            return all_of(self.is_trivial(substitute(type_, arguments), (*inside, name)) for type_ in types)
        if name in OF_ARGUMENTS:
            arguments = [part for part in arguments_of(words) if not part[0][0].isdigit()]
            return all_of(self.is_trivial(part, inside) for part in arguments) if arguments else None
        if name in OWNING:
            return False
        return True if any(word in PLAIN for word in head(words)) else None

    def is_polymorphic(self, name, inside=()):
        known = self.known.get(name)
        return name in POLYMORPHIC or (known is not None and name not in inside and (
            known.is_polymorphic or any(self.is_polymorphic(name_of(base), (*inside, name)) for base in known.bases)))

    def is_dangerous(self, words, inside=()):
        """Whether T{...} is an aggregate with destructors to run; None if T is unknown."""
        words = self.resolved(words)
        name = name_of(words)
        if name == "array":
            return self.is_trivial(words) is False
        if name in self.known:
            known = self.known[name]
            if True not in known.can_be_aggregates or name in inside or self.is_polymorphic(name):
                return False
            if False in known.can_be_aggregates:
                return None
            arguments = dict(zip(known.parameters, arguments_of(words)))
            return (any(self.is_trivial(substitute(type_, arguments)) is not True for _, type_ in known.members)
                    or any(self.is_dangerous(base, (*inside, name)) for base in known.bases))
        return False if name in self.enums or name in OWNING | PLAIN | OF_ARGUMENTS else None

    def is_dangerous_with(self, fields):
        """The same for {.field = ...} and a parameter of any type."""
        fitting = [name for name, known in self.known.items()
                   if True in known.can_be_aggregates and fields <= {field for field, _ in known.members}]
        return all(self.is_trivial([name]) is not True for name in fitting) if fitting else None
