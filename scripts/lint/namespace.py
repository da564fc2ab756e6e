"""Checks the ABI version in the sources, and the visibility of public headers.

    namespace simplenet::v0 {            wherever namespace simplenet is opened; a declaration outside it
                                         would be a second, different name
    #include <simplenet/core/abi.hpp>    before that, unless another header of ours comes first: it
                                         declares v0 as an inline namespace, once
    #pragma GCC visibility push(default) in each public header, after its includes
    #pragma GCC visibility pop           its last line: the library is compiled with hidden
                                         visibility, and programs may be too

--fix writes all of these. docs/development/versioning.md gives the reasons, and says when v0 becomes v1.
"""

import re

ABI = "v0"
DECLARED = "include/simplenet/core/abi.hpp"
PRINTERS = "share/gdb/libsimplenet-gdb.py"

TREES = ["include", "src", "tests", "examples", "programs", "benchmarks", "docs/snippets"]
PUSH = "#pragma GCC visibility push(default)\n"
POP = "#pragma GCC visibility pop\n"
INCLUDE = "#include <simplenet/core/abi.hpp>\n"
OPENED = re.compile(r"^(namespace |} // namespace )simplenet(?!::v\d)((?:::[\w:]+)?)(?= \{$|$)", re.MULTILINE)
OTHER_VERSION = re.compile(rf"^namespace simplenet::(?!{ABI}\b)v\d+\b|\binline namespace v\d+\b", re.MULTILINE)
FIRST_NAMESPACE = re.compile(r"^namespace simplenet\b", re.MULTILINE)
OURS = re.compile(r'^#include (?:"|<simplenet/)', re.MULTILINE)
ANY_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
ONCE = re.compile(r"(?:^#pragma once\n)?(?:^//.*\n)*", re.MULTILINE)


def fixed(text, is_public):
    text = OPENED.sub(rf"\1simplenet::{ABI}\2", text)
    opening = FIRST_NAMESPACE.search(text)
    if opening and not OURS.search(text):
        place = max((include.end() for include in ANY_INCLUDE.finditer(text)), default=ONCE.match(text).end())
        text = text[:place] + "\n" + INCLUDE + text[place:]
        opening = FIRST_NAMESPACE.search(text)
    if is_public and opening:
        if PUSH not in text:
            text = text[:opening.start()] + PUSH + "\n" + text[opening.start():]
        if not text.endswith(POP):
            text = text.rstrip("\n") + "\n\n" + POP
    return text


def check(root, fix=False):
    complaints = []
    files = [file for tree in TREES for pattern in ("*.hpp", "*.cpp")
             for file in sorted((root / tree).rglob(pattern)) if file != root / DECLARED]
    for file in files:
        text = file.read_text()
        wanted = fixed(text, is_public=file.is_relative_to(root / "include"))
        if OTHER_VERSION.search(text):
            complaints.append(f"{file.relative_to(root)}: a version other than {ABI}, or a second declaration of it")
        elif wanted != text:
            if fix:
                file.write_text(wanted)
            else:
                complaints.append(f"{file.relative_to(root)}: not in namespace simplenet::{ABI}, without {DECLARED}, "
                                  "or without its visibility; python3 scripts/lint namespace --fix writes all three")
    if f"inline namespace {ABI} {{}}" not in (root / DECLARED).read_text():
        complaints.append(f"{DECLARED}: does not declare {ABI}")
    if f'"simplenet::{ABI}::"' not in (root / PRINTERS).read_text():
        complaints.append(f"{PRINTERS}: its ABI is not {ABI}")
    return complaints, f"{ABI} in {len(files)} files"
