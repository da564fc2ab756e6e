"""Compares servers with the suite's command line and any options.

PYTHONPATH=benchmarks python3 -m suite.pair 'NAME=PROGRAM OPTIONS' 'NAME=PROGRAM OPTIONS' ...
  [--load 'OPTIONS of load_client'] [--build DIR]

The first is compared with the others, alternating and paired; environment as for run_perf_suite.sh.
"""

import argparse
import os
import shlex
import sys

from .run import Suite, raise_descriptor_limit
from .scenarios.cases import load_case
from .settings import Settings
from .subjects import Subject, Tools


def subject(text, first):
    name, command = text.split("=", 1)
    common = ["--port", "0", "--stay", "1"]
    return Subject(name, [*shlex.split(command), *common], first)


def load_options(text):
    words = shlex.split(text)
    return {
        name.removeprefix("--"): int(value) for name, value in zip(words[::2], words[1::2], strict=True)
    }


def main(given=None):
    parser = argparse.ArgumentParser(prog="suite.pair")
    parser.add_argument("servers", nargs="+")
    parser.add_argument("--load", default="--size 64 --connections 100")
    parser.add_argument("--build", default="build/perf")
    parser.add_argument("--two-cores", action="store_true", help="server and client on one each")
    options = parser.parse_args(given)
    settings = Settings("quick")
    for name, value in (("REPEATS", 10), ("SECONDS", 0.5)):
        if name not in settings.changed:
            setattr(settings, name.lower(), value)
    raise_descriptor_limit()
    tools = Tools(os.path.abspath(options.build), os.getcwd(), settings)
    subjects = [subject(text, at == 0) for at, text in enumerate(options.servers)]
    load = load_options(options.load)
    case = load_case(
        tools,
        "pair",
        options.load.replace("--", "").replace(" ", "_"),
        subjects,
        load,
        ["server_cpu_ns", "wall_ns", "p50_ns"],
        both_on_one=not options.two_cores,
        quick=None,
    )
    suite = Suite(tools, settings)
    suite.run(suite.runnable([case]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
