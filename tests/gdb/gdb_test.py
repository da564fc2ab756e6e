#!/usr/bin/env python3
"""Tests share/gdb/libsimplenet-gdb.py on a live process, and on its core file."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "share" / "gdb" / "libsimplenet-gdb.py"
SOURCE = pathlib.Path(__file__).with_name("waits.cpp")


def line_of(comment):
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if comment in line:
            return number
    raise AssertionError(comment)


def skip(reason):
    # In the format of GoogleTest, which scripts/test.sh collects.
    print(f"gdb.tasks_and_printers: Skipped\n{reason}")
    sys.exit(SKIPPED)


def gdb(*commands, program, core=None):
    call = ["gdb", "-nx", "-batch", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off"]
    for command in (f"source {SCRIPT}", *commands):
        call += ["-ex", command]
    call += [program] + ([core] if core else [])
    done = subprocess.run(call, capture_output=True, text=True, timeout=100, check=False)
    return done.stdout + done.stderr


def check(text, what):
    for pattern in what:
        if not re.search(pattern, text, re.M):
            print(text)
            sys.exit(f"no match: {pattern}")


def main(program):
    if shutil.which("gdb") is None:
        skip("gdb is not installed")
    if "True" not in subprocess.run(["gdb", "-nx", "-batch", "-ex", "python print(True)"],
                                    capture_output=True, text=True, check=False).stdout:
        skip("this gdb has no Python")

    tasks = [
        r"^loop of thread 1 \(0x[0-9a-f]+\), 3 tasks:$",
        r"^#1 main: runs, or is ready$|^#\d+ main: runs, or is ready$",
        rf"^#\d+ connection: read_some_operation on fd \d+\n    at .*waits.cpp:"
        rf"{line_of('line of the read')}\n    at .*waits.cpp:{line_of('line of its parent')}$",
        r"^#\d+: sleep_operation\n    at .*waits.cpp:",
    ]
    with tempfile.TemporaryDirectory() as directory:
        core = f"{directory}/core"
        live = gdb("break look", "run", "simplenet tasks", f"generate-core-file {core}",
                   "print unstarted", "print joined", "print good", "print bad", "print loop",
                   program=program)
        if "ptrace" in live and "not permitted" in live or "Could not trace" in live:
            skip("this sandbox lets no process be traced")
        check(live, tasks + [
            r"^\$1 = .*task of .*connection.*, not started",
            r"^\$2 = .*join_handle of #\d+$",
            r"^\$3 = .*value = \{value = 42\}|^\$3 = .*value.*42",
            r"^\$4 = .*error",
            r"^\$5 = .*event_loop with 3 tasks",
        ])
        check(gdb("simplenet tasks", program=program, core=core), tasks)
    print("passed")


if __name__ == "__main__":
    main(sys.argv[1])
