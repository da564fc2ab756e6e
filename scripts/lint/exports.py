"""Holds the symbols of a shared library to the public headers.

Exported is what a public header declares, and nothing else: a function that src/ keeps to itself must
not become a part of the ABI by accident. And of what the OBJECTs need of the public headers, nothing is
missing.
"""

import re
import subprocess

from . import namespace

ABI = f"simplenet::{namespace.ABI}::"

# Of names that have no `::` of their own: what a compiler makes for a class or a variable.
MADE = re.compile(r"^(?:vtable|VTT|typeinfo(?: name)?|guard variable|TLS (?:init|wrapper) function"
                  r"|construction vtable|(?:non-)?virtual thunk|reference temporary #\d+) (?:for|to) ")
HASH = re.compile(rf"^std::(?:__1::)?hash<{ABI}\w+>::operator\(\)")  # __1: of libc++
# Parts of the tests, and what they look at below the library: no program outside can name them.
OF_TESTS = (ABI + "simulation::", ABI + "detail::sys::")
C_NAMES = {"simplenet_dump_tasks"}
# Made by the linker, which exports them or not, as another library of the link has it.
OF_LINKER = {"__bss_start", "_edata", "_end"}
TEMPLATE = re.compile(r"<[^<>]*>")


def symbols(file, *options):
    """(kind, demangled name) of each."""
    text = subprocess.run(["nm", "-C", *options, file], check=True, capture_output=True,
                          text=True).stdout
    for line in text.splitlines():
        found = re.match(r"(?:[0-9a-f]+)? *([A-Za-z]) (.*)$", line)
        if found:
            yield found[1], found[2]


def plain(name):
    """`simplenet::v0::detail::loop::run(int) const` as ["detail", "loop", "run"]."""
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
    """What words stand in the public headers, by file."""

    def __init__(self, root):
        self.words = {}
        for file in (root / "include").rglob("*.hpp"):
            code = re.sub(r"//.*", "", file.read_text())
            self.words[file] = set(re.findall(r"\w+", code))

    def declare(self, parts):
        """Whether one of them has the function, and its class or namespace."""
        wanted = {part.lstrip("~") for part in parts[-2:]} - {""}
        wanted = {"operator" if part.startswith("operator") else part for part in wanted}
        return any(wanted <= words for words in self.words.values())


def check(root, library, used=()):
    headers = Headers(root)
    complaints = []
    exported = set()
    for kind, name in symbols(library, "-D", "--defined-only"):
        exported.add(name)
        # Weak and unique ones: what is inline or a template, of ours or of the standard library.
        if kind in "VWvwu" or name in C_NAMES | OF_LINKER or HASH.match(name):
            continue
        bare = MADE.sub("", name)
        if not bare.startswith(ABI):
            complaints.append(f"not ours, and exported: {name}")
        elif not headers.declare(plain(name)):
            complaints.append(f"in no public header, and exported: {name}")

    needed = set()
    for file in used:
        needed |= {name for kind, name in symbols(file, "-u")
                   if MADE.sub("", name).startswith(ABI) or HASH.match(name) or name in C_NAMES}
    complaints += [f"needed by programs, and not exported: {name}"
                   for name in sorted(needed - exported)
                   if not MADE.sub("", name).startswith(OF_TESTS) and headers.declare(plain(name))]
    return complaints, f"{len(exported)} exported, {len(needed)} of them needed by {len(used)} objects"
