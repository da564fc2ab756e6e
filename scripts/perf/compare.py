"""Two builds of the library against each other: paired runs of the echo server, and instructions.

scripts/perf_check.sh compare makes the builds. Fails when the new one is slower beyond the noise of the
run, or needs 1 % more instructions.
"""

import argparse
import dataclasses
import sys

from . import programs, scenarios
from .settings import Settings
from .suite import Suite, raise_descriptor_limit
from .subjects import Tools

MORE_INSTRUCTIONS = 1.01


def cases(old, new):
    """Each way of our echo server is a case: the new build is ours, the old one the other."""
    before = {each.name: each for each in old.echo(4096) if each.ours}
    for now in (each for each in new.echo(4096) if each.ours):
        then = dataclasses.replace(before[now.name], name="old", ours=False)
        both = [dataclasses.replace(now, name="new"), then]
        way = now.name.removeprefix("ours_")
        for connections in new.settings.numbers("connections"):
            yield scenarios.load_case(
                new,
                "compare",
                f"{way}_{connections}",
                both,
                {"size": 64, "connections": connections},
                ["server_cpu_ns"],
                quick=None,
            )
            if now.backend == "epoll" and programs.have("valgrind"):

                def measure(subject, _, connections=connections):
                    return {"instructions": scenarios.callgrind(new, subject, connections)}

                yield scenarios.Case(
                    "compare",
                    f"instructions_{way}_{connections}",
                    both,
                    measure,
                    ["instructions"],
                    seconds=6,
                    repeatable=True,
                )


def worse(pair):
    """Whether a comparison of new (ours) to old says that the new one has lost."""
    if pair["measure"] == "instructions":
        return pair["ratio"] < 1 / MORE_INSTRUCTIONS
    return pair["verdict"] == "slower"


def main(given=None):
    parser = argparse.ArgumentParser(prog="scripts/perf_check.sh compare")
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--root", required=True)
    options = parser.parse_args(given)
    settings = Settings("quick")
    for name, value in (("CONNECTIONS", "1,100"), ("REPEATS", 6), ("SECONDS", 0.5)):
        if name not in settings.changed:
            setattr(settings, name.lower(), value)
    raise_descriptor_limit()
    old, new = (Tools(build, options.root, settings) for build in (options.old, options.new))
    suite = Suite(new, settings)
    suite.run(suite.runnable(cases(old, new)))
    lost = [each for each in suite.results["pairs"] if worse(each)]
    for each in lost:
        print(f"worse: {each['case']} {each['measure']}, new to old {1 / each['ratio']:.3f}")
    if not suite.results["pairs"]:
        print("nothing could be compared")
        return 2
    print(f"{len(suite.results['pairs'])} comparisons, {len(lost)} worse")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
