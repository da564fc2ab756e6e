"""The suite itself: chooses cases, runs them round by round, prints and saves the results."""

import argparse
import os
import re
import resource
import signal
import sys
import textwrap
import time

from . import goals, lines, machine, paired, programs, report, saved, scenarios
from .programs import Failed
from .progress import Progress, show_seconds
from .settings import Settings, Wrong, describe, pattern
from .subjects import Tools


class Stopped(BaseException):
    """A signal requested the end. Not an Exception, so that handlers of failed runs let it pass."""

    def __init__(self, which):
        super().__init__(signal.Signals(which).name)
        self.status = 128 + which


def stop_on_signals():
    """Turns signals into an exception, so that running programs are ended on the way out."""

    def stop(which, _):
        raise Stopped(which)

    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Signals that were ignored stay ignored: nohup, and background jobs of a shell.
        if signal.getsignal(which) != signal.SIG_IGN:
            signal.signal(which, stop)


class Suite:
    """`save` is called after each case, `raw` gets every line; `look` measures how busy others are."""

    def __init__(self, tools, settings, out=sys.stdout, save=None, raw=None, look=machine.busy):
        self.tools = tools
        self.settings = settings
        self.out = out
        self.save = save
        self.look = look
        self.raw = raw
        self.runs = report.Runs()
        self.results = {"medians": [], "pairs": [], "noise": [], "skips": [], "goals": []}
        self.shown = set()
        self.disturbed = []  # cases before which others were busy

    def say(self, kind, **fields):
        line = lines.format_line(kind, **fields)
        print(line, file=self.out, flush=True)
        if self.raw:
            print(line, file=self.raw, flush=True)

    def skip(self, reason, **where):
        self.results["skips"].append({**where, "reason": reason})
        self.say("PERF_SKIP", **where, reason=reason)

    # --- cases -----------------------------------------------------------------------------------

    def choose(self, wanted):
        chosen = []
        for name, made in self.scenarios(wanted):
            if isinstance(made, Failed):
                self.skip(str(made), scenario=name)
            else:
                chosen += self.runnable(made)
        return chosen

    def scenarios(self, wanted):
        """(name, cases) of each wanted scenario; in place of the cases, the reason if there are none."""
        for name, make in scenarios.SCENARIOS.items():
            if wanted and not re.fullmatch(wanted, name):
                continue
            try:
                yield name, list(make(self.tools))
            except Failed as failed:
                yield name, failed

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
        try:
            for case in cases:
                self.run_case(case, progress)
                if self.save:
                    self.save()
        finally:
            progress.clear()

    def show(self, configurations):
        """Each configuration that has not been printed yet."""
        for name, text in configurations:
            if (name, text) not in self.shown:
                self.shown.add((name, text))
                print(f"configuration of {name}:\n" + textwrap.indent(text, "    "), file=self.out, flush=True)

    def amount_for(self, case):
        """How much of the case every subject runs; raises Failed if no subject can tell."""
        # Measured with a subject that is not ours if there is one; the amount is the same for all.
        order = [each for each in case.subjects if not each.ours and not each.twin]
        order += [each for each in case.subjects if each.ours]
        reasons = []
        for reference in order:
            try:
                return case.calibrate(reference)
            except (Failed, OSError) as failed:
                reasons.append(f"{reference.name}: {failed}")
        raise Failed("calibration by " + "; ".join(reasons))

    def run_case(self, case, progress):
        where = {"scenario": case.scenario, "case": case.name}
        if case.configurations:
            self.show(case.configurations())
        live = list(case.subjects)
        rounds = self.repeats_of(case)
        busy = self.look()
        for _ in range(3):  # repeats what is over in a moment
            if busy > goals.BUSY_CAP:
                busy = self.look()
        if busy > goals.BUSY_CAP:
            self.disturbed.append(f"{case.scenario} {case.name}")
        amount = None
        if case.calibrate:
            try:
                amount = self.amount_for(case)
            except Failed as failed:
                progress.drop(case.seconds * rounds * len(live))
                self.skip(str(failed), **where)
                return
        for which in range(rounds):
            for subject in paired.round_order(live, which):
                if subject not in live:
                    continue
                programs.settle()
                try:
                    figures = case.measure(subject, amount)
                except Exception as failed:  # pylint: disable=broad-except
                    # Whatever it is, it concerns this subject; the run continues.
                    live.remove(subject)
                    progress.drop(case.seconds * (rounds - which - 1))
                    known = isinstance(failed, (Failed, OSError))
                    self.skip(str(failed) if known else repr(failed), **where, subject=subject.name)
                    continue
                finally:
                    progress.step(case.seconds, f"{case.scenario} {case.name}")
                self.runs.add(case, subject.name, which, figures)
                progress.clear()
                self.say("PERF_RUN", **where, subject=subject.name, round=which, amount=amount or 0, **figures)
        self.summarise(case, live, busy)

    def summarise(self, case, live, busy=0.0):
        for each in report.medians(case, self.runs, [each.name for each in live]):
            self.results["medians"].append({**each, "busy": busy})
            self.say("PERF_MEDIAN", **each)
        pairs, noises = report.comparisons(case, self.runs, live)
        for each in noises:
            self.results["noise"].append({**each, "busy": busy})
            self.say("PERF_NOISE", **each, busy=busy)
        for each in pairs:
            self.results["pairs"].append({**each, "busy": busy})
            self.say("PERF_PAIRED_MEDIAN", **{k: "unknown" if v is None else v for k, v in each.items()})

    def judge(self):
        self.results["goals"] = report.judge_goals(self.results)
        for each in self.results["goals"]:
            self.say("PERF_GOAL", **each)

    def summary(self):
        """For people: where we are slower, and how noisy the run was."""
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
        said = [each["verdict"] for each in self.results["goals"]]
        counts = (f"{said.count(each)} {each}" for each in (*reversed(goals.VERDICTS), "unmeasured"))
        print("goals: " + ", ".join(counts), file=self.out)
        if self.disturbed:
            print(
                f"BUSY: other programs ran before {len(self.disturbed)} cases, the first of them "
                f"{self.disturbed[0]}; measurements by the clock decide no goal there",
                file=self.out,
            )


def raise_descriptor_limit():
    """Ten thousand connections need as many descriptors in two processes; children inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def arguments(given):
    def regular_expression(text):
        try:
            return pattern(text)
        except ValueError as wrong:
            raise argparse.ArgumentTypeError(f"{text} {wrong}") from None

    parser = argparse.ArgumentParser(
        prog="scripts/run_perf_suite.sh",
        description="Measures the library beside Boost.Asio, libuv, libevent, tokio and bare system calls. Close "
        "everything else on the machine first.",
        epilog="Parameters, from the environment:\n\n" + describe() + "\n\n"
        "Read the figures with docs/development/performance.md.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="full",
                      help="about two minutes: does it work, and is anything far off")
    mode.add_argument("--full", dest="mode", action="store_const", const="full",
                      help="the default; about three quarters of an hour")
    parser.add_argument("--parameters", action="help", help="the same as --help")
    parser.add_argument("--scenario", default=None, type=regular_expression,
                        metavar="REGEX", help="only scenarios whose whole name matches")
    parser.add_argument("--list", action="store_true", help="list the scenarios and their cases")
    saving = parser.add_mutually_exclusive_group()
    saving.add_argument("--save", metavar="FILE",
                        help="save the run there; a complete run, with all scenarios of full mode, is saved to "
                        "docs/development/perf-data/DATE-COMMIT-N.json by default. A stopped run "
                        "leaves its cases in a file with -partial")
    saving.add_argument("--no-save", action="store_true", help="save nothing, not even in full mode")
    parser.add_argument("--raw", metavar="FILE",
                        help="also write every line there; a run saved by default does so "
                        "in the folder runs of the build")
    parser.add_argument("--build", metavar="DIR", help="where to build (default: build/perf)")
    parser.add_argument("--no-build", action="store_true", help="use the existing programs")
    parser.add_argument("--install", action="store_true",
                        help="install missing libraries to compare with, using apt; otherwise they are "
                        "skipped with a PERF_SKIP line")
    parser.add_argument("--plan", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--root", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    options.build = os.path.abspath(options.build or os.path.join(options.root, "build", "perf"))
    return options


def list_cases(suite, wanted):
    cases = []
    for name, made in suite.scenarios(wanted):
        if isinstance(made, Failed):
            print(f"{name}: {made}")
            continue
        for case in made:
            names = (f"({each.name})" if each.missing else each.name for each in case.subjects)
            print(f"{case.scenario} {case.name}: {' '.join(names)}")
            case.subjects = [each for each in case.subjects if not each.missing] or case.subjects
            cases.append(case)
    runs = sum(suite.repeats_of(case) * len(case.subjects) for case in cases)
    print(f"{len(cases)} cases, {runs} runs, about {show_seconds(suite.estimate(cases))}; (who) is not built")


def main(given=None):
    options = arguments(given)
    try:
        settings = Settings(options.mode)
        wanted = settings.scenarios if options.scenario is None else options.scenario
        if wanted and not any(re.fullmatch(wanted, name) for name in scenarios.SCENARIOS):
            raise Wrong(f"no scenario is called {wanted}; --list shows them")
        for place in filter(None, (options.save, options.raw)):
            saved.check_place(place)
        if options.plan:  # for scripts/run_perf_suite.sh
            print("plan", int(options.install), int(not (options.no_build or options.list)), options.build)
            return 0
        return run(options, settings, wanted)
    except Wrong as wrong:
        print(f"run_perf_suite.sh: {wrong}", file=sys.stderr)
        return 2


def places(options, settings, wanted, meta):
    """(file of the run, file of its lines), None for what is not kept; only a complete run is kept by
    default."""
    if options.save or options.no_save or options.mode != "full" or wanted or settings.subjects or settings.micro:
        return options.save, options.raw
    parent = os.path.join(options.root, "docs", "development", "perf-data")
    raw = os.path.join(options.build, "runs")
    name = saved.free_name(f"{meta['date']}-{meta['commit'].replace('+', '-')}", parent, raw)
    return os.path.join(parent, f"{name}.json"), options.raw or os.path.join(raw, f"{name}.txt")


def run(options, settings, wanted):
    raise_descriptor_limit()
    suite = Suite(Tools(options.build, options.root, settings), settings)
    if options.list:
        list_cases(suite, wanted)
        return 0
    meta = machine.describe(options.root, options.build)
    machine.check_build(meta)
    meta["busy"] = round(machine.busy(2.0), 3)
    meta["complete"] = False
    place, raw = places(options, settings, wanted, meta)
    if raw:
        os.makedirs(os.path.dirname(os.path.abspath(raw)), exist_ok=True)
        suite.raw = open(raw, "w")
    began = time.monotonic()
    suite.say("PERF", suite="libsimplenet", mode=options.mode, repeats=settings.repeats,
              date=meta["date"], commit=meta["commit"])
    for name, value in meta.items():
        suite.say("PERF_META", **{name: value})
    for name, value in settings.as_dict().items():
        suite.say("PERF_META", **{f"PERF_{name.upper()}": value})
    suite.say("PERF_META_ASYNC", sizes=settings.sizes, connections=settings.connections,
              seconds=settings.seconds, server_cpu=settings.server_cpu, client_cpu=settings.server_cpu,
              load="benchmarks/load_client.cpp", cost="processor time of the server's process")
    if meta["busy"] > goals.BUSY_CAP:
        print(f"\n*** THE MACHINE IS BUSY: other programs use {meta['busy']:.2f} processors. Measurements by the\n"
              "*** clock decide no goal. Close everything else and start again.\n", file=sys.stderr)
    cases = suite.choose(wanted)
    if not cases:
        print("none of the cases can run here", file=sys.stderr)
        return 1
    kept = saved.Saved(place) if place else None

    def save():
        kept.write(meta, settings, suite.runs, suite.results)

    if kept:
        suite.save = save
        save()
    status = 0
    stop_on_signals()
    try:
        suite.run(cases)
    except Stopped as stopped:
        print(f"\nstopped by {stopped}; the measurements so far:", file=sys.stderr)
        status = stopped.status
    suite.judge()
    suite.summary()
    print(f"took {show_seconds(time.monotonic() - began)}")
    if not suite.runs.values:
        print("nothing was measured: see the PERF_SKIP lines", file=sys.stderr)
        status = status or 1
    if kept:
        meta["complete"] = status == 0
        save()
        print(f"written to {kept.finish() if status == 0 else kept.partial}")
    return status


if __name__ == "__main__":
    sys.exit(main())
