"""Compares two builds of the library: paired runs of the echo server, and instructions.

scripts/perf_check.sh compare makes the builds. Fails if the new one is slower, or needs 1 % more instructions.
One of eight timed cases is often slower by chance, so a slower case must lose by more than 1 %, and runs once
more.
"""

import argparse
import dataclasses
import sys

from . import programs
from .run import Stopped, Suite, raise_descriptor_limit, stop_on_signals
from .scenarios.cases import Case, buffer_for, load_case
from .scenarios.counts import callgrind
from .settings import Settings, Wrong
from .subjects import Tools

MORE_INSTRUCTIONS = 1.01


TIMES_SLOWER = 1.01


def cases(old, new):
    """A case for each variant of our echo server: the new build is ours, the old one the other."""
    for size in new.settings.numbers("sizes"):
        buffer = buffer_for(size)
        for connections in new.settings.numbers("connections"):
            yield from ways(old, new, buffer, f"{size}B_{connections}", {"size": size, "connections": connections})
    for connections in new.settings.numbers("churn_connections"):
        options = {"size": 64, "connections": connections, "churn": 1}
        yield from ways(old, new, 4096, f"churn_{connections}", options)


def ways(old, new, buffer, name, options):
    before = {each.name: each for each in old.echo(buffer) if each.ours}
    for now in (each for each in new.echo(buffer) if each.ours):
        then = dataclasses.replace(before[now.name], name="old", ours=False)
        both = [dataclasses.replace(now, name="new"), then]
        way = now.name.removeprefix("ours_")
        yield load_case(
            new, "compare", f"{way}_{name}", both, options, ["server_cpu_ns"], quick=None
        )
        counted = now.backend == "epoll" and options["size"] == 64 and "churn" not in options
        if counted and programs.have("valgrind"):

            def measure(subject, _, connections=options["connections"]):
                return {"instructions": callgrind(new, subject, connections)}

            yield Case(
                "compare",
                f"instructions_{way}_{name}",
                both,
                measure,
                ["instructions"],
                seconds=6,
                repeatable=True,
            )


def worse(pair):
    """Whether a comparison of new (ours) to old says that new is slower."""
    if pair["measure"] == "instructions":
        return pair["ratio"] < 1 / MORE_INSTRUCTIONS
    return pair["verdict"] == "slower" and pair["ratio"] < 1 / TIMES_SLOWER


def lost_twice(make_suite, chosen):
    """Returns (pairs of the first run, those that were worse in it and in a second run)."""
    first = make_suite()
    first.run(chosen)
    pairs = first.results["pairs"]
    lost = [each for each in pairs if worse(each)]
    again = [each for each in chosen if each.name in {pair["case"] for pair in lost}]
    if not again:
        return pairs, []
    print(f"repeating the slower cases: {' '.join(each.name for each in again)}")
    second = make_suite()
    second.run(again)
    confirmed = {each["case"] for each in second.results["pairs"] if worse(each)}
    return pairs, [each for each in lost if each["case"] in confirmed]


def main(given=None):
    parser = argparse.ArgumentParser(prog="scripts/perf_check.sh compare")
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--root", required=True)
    options = parser.parse_args(given)
    try:
        settings = Settings("quick")
    except Wrong as wrong:
        print(f"perf_check.sh: {wrong}", file=sys.stderr)
        return 2
    for name, value in (("CONNECTIONS", "1,100"), ("REPEATS", 6), ("SECONDS", 0.5)):
        if name not in settings.changed:
            setattr(settings, name.lower(), value)
    raise_descriptor_limit()
    stop_on_signals()
    old, new = (Tools(build, options.root, settings) for build in (options.old, options.new))
    chosen = Suite(new, settings).runnable(cases(old, new))
    try:
        pairs, lost = lost_twice(lambda: Suite(new, settings), chosen)
    except Stopped as stopped:
        print(f"stopped by {stopped}")
        return stopped.status
    for each in lost:
        print(f"worse: {each['case']} {each['measure']}, new to old {1 / each['ratio']:.3f}")
    if not pairs:
        print("nothing could be compared")
        return 2
    print(f"{len(pairs)} comparisons, {len(lost)} worse")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
