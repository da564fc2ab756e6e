"""The suite itself: chooses cases, runs them round by round, prints and writes what came out."""

import argparse
import os
import re
import resource
import sys
import time

from . import lines, machine, paired, programs, report, scenarios
from .programs import Failed
from .progress import Progress, show_seconds
from .settings import Settings, describe
from .subjects import CONTROL, Tools


class Suite:
    def __init__(self, tools, settings, out=sys.stdout):
        self.tools = tools
        self.settings = settings
        self.out = out
        self.text = []
        self.runs = report.Runs()
        self.results = {"medians": [], "pairs": [], "noise": [], "skips": [], "goals": []}

    def say(self, kind, **fields):
        line = lines.format_line(kind, **fields)
        self.text.append(line)
        print(line, file=self.out, flush=True)

    def skip(self, reason, **where):
        self.results["skips"].append({**where, "reason": reason})
        self.say("PERF_SKIP", **where, reason=reason)

    # --- cases -----------------------------------------------------------------------------------

    def choose(self, wanted):
        chosen = []
        for name, make in scenarios.SCENARIOS.items():
            if not re.fullmatch(wanted, name):
                continue
            try:
                chosen += self.runnable(make(self.tools))
            except Failed as failed:
                self.skip(str(failed), scenario=name)
        return chosen

    def runnable(self, made):
        """The cases without the subjects that cannot run; each of those is reported once."""
        cases = []
        reported = set()
        for case in made:
            for subject in case.subjects:
                where = case.scenario, subject.name, subject.missing
                if subject.missing and where not in reported:
                    reported.add(where)
                    self.skip(subject.missing, scenario=case.scenario, subject=subject.name)
            case.subjects = [each for each in case.subjects if not each.missing]
            if case.subjects:
                cases.append(case)
        return cases

    def repeats_of(self, case):
        return 1 if case.repeatable else case.repeats or self.settings.repeats

    def estimate(self, cases):
        return sum(case.seconds * self.repeats_of(case) * len(case.subjects) for case in cases)

    def run(self, cases):
        progress = Progress(self.estimate(cases))
        for case in cases:
            self.run_case(case, progress)
        progress.clear()

    def run_case(self, case, progress):
        where = {"scenario": case.scenario, "case": case.name}
        live = list(case.subjects)
        amount = None
        if case.calibrate:
            # By a subject that is not ours where there is one; then it is the same for everybody.
            reference = next((each for each in live if not each.ours and each.name != CONTROL), live[0])
            try:
                amount = case.calibrate(reference)
            except Failed as failed:
                self.skip(f"calibration by {reference.name}: {failed}", **where)
                return
        for which in range(self.repeats_of(case)):
            for subject in paired.round_order(live, which):
                if subject not in live:
                    continue
                programs.settle()
                try:
                    figures = case.measure(subject, amount)
                except (Failed, OSError) as failed:
                    live.remove(subject)
                    self.skip(str(failed), **where, subject=subject.name)
                    continue
                finally:
                    progress.step(case.seconds, f"{case.scenario} {case.name}")
                self.runs.add(case, subject.name, which, figures)
                progress.clear()
                self.say("PERF_RUN", **where, subject=subject.name, round=which, amount=amount or 0, **figures)
        self.summarise(case, live)

    def summarise(self, case, live):
        names = [each.name for each in live]
        ours = [each.name for each in live if each.ours]
        others = [each.name for each in live if not each.ours and each.name != CONTROL]
        for each in report.medians(case, self.runs, names):
            self.results["medians"].append(each)
            self.say("PERF_MEDIAN", **each)
        pairs, noises = report.comparisons(case, self.runs, ours, others)
        for each in noises:
            self.results["noise"].append(each)
            self.say("PERF_NOISE", **each)
        for each in pairs:
            self.results["pairs"].append(each)
            self.say("PERF_PAIRED_MEDIAN", **{k: "unknown" if v is None else v for k, v in each.items()})

    def judge(self):
        self.results["goals"] = report.judge_goals(self.results)
        for each in self.results["goals"]:
            self.say("PERF_GOAL", **each)

    def summary(self):
        """For people: where we are slower, and how noisy it was."""
        worst = {}
        for each in self.results["noise"]:
            key = each["measure"]
            worst[key] = max(worst.get(key, 0), each["noise"])
        for measure, noise in worst.items():
            print(f"largest noise of {measure}: {100 * noise:.1f} %", file=self.out)
        count = {"faster": 0, "tie": 0, "slower": 0, "unknown": 0}
        for each in self.results["pairs"]:
            count[each["verdict"]] = count.get(each["verdict"], 0) + 1
        print("comparisons: " + ", ".join(f"{n} {what}" for what, n in count.items() if n), file=self.out)
        met = [each["verdict"] for each in self.results["goals"]]
        print(
            f"goals: {met.count('met')} met, {met.count('missed')} missed, "
            f"{met.count('missed_within_noise')} missed within noise, {met.count('unmeasured')} unmeasured",
            file=self.out,
        )


def raise_descriptor_limit():
    """Ten thousand connections need as many descriptors in two processes; children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def arguments(given):
    parser = argparse.ArgumentParser(
        prog="scripts/run_perf_suite.sh",
        description="Measures the library beside Boost.Asio, libuv, libevent, tokio and bare system calls.",
        epilog="Parameters, from the environment:\n\n" + describe() + "\n\n"
        "Read the figures with docs/development/performance.md.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="full",
                      help="about two minutes: does it work, and is anything far off")
    mode.add_argument("--full", dest="mode", action="store_const", const="full", help="the default")
    parser.add_argument("--scenario", default=os.environ.get("PERF_SCENARIOS", ".*"),
                        metavar="REGEX", help="only scenarios whose whole name matches")
    parser.add_argument("--list", action="store_true", help="names the scenarios and their cases")
    parser.add_argument("--save", metavar="DIR",
                        help="writes CSV and JSON there (full mode does: docs/development/perf-data/DATE)")
    parser.add_argument("--no-save", action="store_true", help="writes nothing, in full mode either")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--root", required=True, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given=None):
    options = arguments(given)
    settings = Settings(options.mode)
    raise_descriptor_limit()
    tools = Tools(options.build, options.root, settings)
    suite = Suite(tools, settings)
    meta = machine.describe(options.root, options.build)
    began = time.monotonic()

    if options.list:
        cases = suite.choose(options.scenario)
        for case in cases:
            print(f"{case.scenario} {case.name}: {' '.join(each.name for each in case.subjects)}")
        print(f"{len(cases)} cases, about {show_seconds(suite.estimate(cases))}")
        return 0
    suite.say("PERF", suite="libsimplenet", mode=options.mode, repeats=settings.repeats,
              date=meta["date"], commit=meta["commit"])
    for name, value in meta.items():
        suite.say("PERF_META", **{name: value})
    for name, value in settings.as_dict().items():
        suite.say("PERF_META", **{f"PERF_{name.upper()}": value})
    suite.say("PERF_META_ASYNC", sizes=settings.sizes, connections=settings.connections,
              seconds=settings.seconds, server_cpu=settings.server_cpu, client_cpu=settings.server_cpu,
              load="benchmarks/load_client.cpp", cost="processor time of the server's process")
    cases = suite.choose(options.scenario)
    if not cases:
        print("no such scenario, or nothing of it can run here", file=sys.stderr)
        return 1
    try:
        suite.run(cases)
    except KeyboardInterrupt:
        print("\nstopped; what was measured so far:", file=sys.stderr)
        options.no_save = True
    suite.judge()
    suite.summary()
    print(f"took {show_seconds(time.monotonic() - began)}")

    directory = options.save or (
        os.path.join(options.root, "docs", "development", "perf-data", meta["date"])
        if options.mode == "full"
        else None
    )
    if directory and not options.no_save:
        report.write(directory, meta, settings, suite.runs, suite.results, suite.text)
        print(f"written to {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
