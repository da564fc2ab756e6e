"""Checks the symbols of a shared library against the public headers.

The library must export only declarations of public headers: an internal function of src/ must not become part
of the ABI by accident. And every symbol of the public headers that the OBJECTs need must be exported.
"""

import re
import subprocess

from . import namespace

ABI = f"simplenet::{namespace.ABI}::"

# Symbols without their own `::`, which a compiler generates for a class or a variable.
MADE = re.compile(r"^(?:vtable|VTT|typeinfo(?: name)?|guard variable|TLS (?:init|wrapper) function"
                  r"|construction vtable|(?:non-)?virtual thunk|reference temporary #\d+) (?:for|to) ")
HASH = re.compile(rf"^std::(?:__1::)?hash<{ABI}\w+>::operator\(\)")  # __1 is libc++'s
# Parts of the tests and the internals that they use: no program outside can name them.
OF_TESTS = (ABI + "simulation::", ABI + "detail::sys::")
C_NAMES = {"simplenet_dump_tasks"}
# Made by the linker, which exports them or not, depending on the other libraries.
OF_LINKER = {"__bss_start", "_edata", "_end"}
TEMPLATE = re.compile(r"<[^<>]*>")


def symbols(file, *options):
    """Returns (kind, demangled name) of each symbol."""
    text = subprocess.run(["nm", "-C", *options, file], check=True, capture_output=True,
                          text=True).stdout
    for line in text.splitlines():
        found = re.match(r"(?:[0-9a-f]+)? *([A-Za-z]) (.*)$", line)
        if found:
            yield found[1], found[2]


def plain(name):
    """`simplenet::v0::detail::loop::run(int) const` becomes ["detail", "loop", "run"]."""
    name = MADE.sub("", name)
    name = re.sub(r"\[abi:\w+\]", "", name)
    name = name.replace("(anonymous namespace)", "anonymous")
    while True:
        shorter = TEMPLATE.sub("", name)
        if shorter == name:
            break
        name = shorter
    name = name.split("(")[0].split(" ")[-1]
    return name.removeprefix(ABI).split("::")


class Headers:
    """The words in each public header."""

    def __init__(self, root):
        self.words = {}
        for file in (root / "include").rglob("*.hpp"):
            code = re.sub(r"//.*", "", file.read_text())
            self.words[file] = set(re.findall(r"\w+", code))

    def declare(self, parts):
        """Whether a header has both the function and its class or namespace."""
        wanted = {part.lstrip("~") for part in parts[-2:]} - {""}
        wanted = {"operator" if part.startswith("operator") else part for part in wanted}
        return any(wanted <= words for words in self.words.values())


def check(root, library, used=()):
    headers = Headers(root)
    complaints = []
    exported = set()
    for kind, name in symbols(library, "-D", "--defined-only"):
        exported.add(name)
        # Weak and unique symbols: inline functions and templates, ours or of the standard library.
        if kind in "VWvwu" or name in C_NAMES | OF_LINKER or HASH.match(name):
            continue
        bare = MADE.sub("", name)
        if not bare.startswith(ABI):
            complaints.append(f"exported, but not ours: {name}")
        elif bare.startswith(OF_TESTS):
            continue  # the seam of the tests, for the libraries of components; no package has it
        elif not headers.declare(plain(name)):
            complaints.append(f"exported, but in no public header: {name}")

    needed = set()
    for file in used:
        needed |= {name for kind, name in symbols(file, "-u")
                   if MADE.sub("", name).startswith(ABI) or HASH.match(name) or name in C_NAMES}
    complaints += [f"needed by programs, but not exported: {name}"
                   for name in sorted(needed - exported)
                   if not MADE.sub("", name).startswith(OF_TESTS) and headers.declare(plain(name))]
    return complaints, f"{len(exported)} exported, {len(needed)} of them needed by {len(used)} objects"
