"""The arithmetic of the performance suite, its lines, its order of runs and its goals."""

import contextlib
import io
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from suite import compare, data, goals, lines, machine, paired, programs, report, saved, scenarios, tables
from suite.progress import Progress, show_seconds
from suite.scenarios.cases import Case
from suite.settings import PARAMETERS, Settings, Wrong, allowed_processors
from suite.subjects import Subject, Tools
from suite.run import Suite, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def setUpModule():
    """Nothing here has sockets that the kernel must finish with."""
    patch = mock.patch.object(programs, "settle", lambda: None)
    patch.start()
    unittest.addModuleCleanup(patch.stop)


class PairedTest(unittest.TestCase):
    def test_median_of_odd_even_and_nothing(self):
        self.assertEqual(paired.median([3, 1, 2]), 2)
        self.assertEqual(paired.median([4, 1, 3, 2]), 2.5)
        with self.assertRaises(ValueError):
            paired.median([])

    def test_every_pair_is_in_each_order_equally_often(self):
        names = ["a", "b", "c", "d"]
        orders = [paired.round_order(names, which) for which in range(6)]
        for one, two in itertools.combinations(names, 2):
            first = sum(order.index(one) < order.index(two) for order in orders)
            self.assertEqual(first, 3)

    def test_repeats_are_even(self):
        self.assertEqual(paired.check_repeats(6), 6)
        for wrong in (0, 1, 5, -2):
            with self.assertRaises(ValueError):
                paired.check_repeats(wrong)

    def test_a_ratio_above_one_is_ours_being_faster(self):
        self.assertEqual(paired.speed_ratio(50, 100), 2)
        self.assertEqual(paired.speed_ratio(100, 50, more_is_better=True), 2)
        self.assertIsNone(paired.speed_ratio(0, 50))
        self.assertIsNone(paired.speed_ratio(None, 50))

    def test_pairs_are_of_the_same_round(self):
        # The machine got three times slower between the rounds; the medians alone see nothing.
        ours, other = {0: 100, 1: 300}, {0: 110, 1: 330}
        for ratio in paired.paired_ratios(ours, other):
            self.assertAlmostEqual(ratio, 1.1)

    def test_a_round_that_one_lacks_is_left_out(self):
        self.assertEqual(paired.paired_ratios({0: 1.0, 2: 1.0}, {0: 2.0, 1: 9.0}), [2.0])
        self.assertEqual(paired.paired_ratios({}, {0: 2.0}), [])

    def test_no_noise_without_a_control(self):
        self.assertIsNone(paired.noise_of([]))

    def test_noise_is_at_least_where_the_control_went(self):
        self.assertGreaterEqual(paired.noise_of([1.05] * 100), 0.05 - 1e-12)

    def test_noise_is_the_same_whichever_side_was_faster(self):
        self.assertAlmostEqual(
            paired.noise_of([1.02, 1.03, 0.99]), paired.noise_of([1 / 1.02, 1 / 1.03, 1 / 0.99])
        )

    def test_more_rounds_mean_less_noise(self):
        few, many = [1.02, 0.98] * 3, [1.02, 0.98] * 30
        self.assertGreater(paired.noise_of(few), paired.noise_of(many))

    def test_one_disturbed_round_changes_little(self):
        calm = [1.01, 0.99, 1.01, 0.99, 1.01, 0.99]
        self.assertLess(paired.noise_of(calm[:-1] + [3.0]), 1.5 * paired.noise_of(calm))

    def test_noise_holds_what_it_says(self):
        # Of many runs of six rounds of equals 5 in 100 may be called a difference, also when the
        # other one is less steady than we and our control are.
        for unsteady in (1, 2, 4):
            source = random.Random(unsteady)

            def one(sigma, source=source):
                return math.exp(source.gauss(0, 0.01 * sigma))

            wrong = 0
            for _ in range(2000):
                ours = [one(1) for _ in range(6)]
                control = [mine / one(1) for mine in ours]
                equals = [one(unsteady) / mine for mine in ours]
                wrong += paired.verdict(equals, paired.noise_of(control)) != "tie"
            self.assertLess(wrong, 100)

    def test_a_difference_is_found_beside_its_noise(self):
        source = random.Random(7)
        found = 0
        for _ in range(500):
            control, faster = (
                [math.exp(source.gauss(more, 0.01)) for _ in range(6)] for more in (0.0, 0.04)
            )
            found += paired.verdict(faster, paired.noise_of(control)) == "faster"
        self.assertGreater(found, 450)

    def test_inside_the_noise_is_a_tie_on_both_sides(self):
        self.assertEqual(paired.verdict([1.02] * 6, 0.02), "tie")
        self.assertEqual(paired.verdict([1 / 1.02] * 6, 0.02), "tie")
        self.assertEqual(paired.verdict([1.03] * 6, 0.02), "faster")
        self.assertEqual(paired.verdict([0.97] * 6, 0.02), "slower")

    def test_rounds_that_do_not_agree_are_a_tie(self):
        self.assertEqual(paired.verdict([1.04, 1.05, 1.06, 1.04, 1.05, 0.99], 0.01), "tie")
        self.assertEqual(paired.verdict([1.04, 1.05, 1.06, 1.04, 1.05, 1.9], 0.01), "faster")

    def test_the_interval_leaves_out_what_many_rounds_allow(self):
        self.assertEqual(paired.interval([3, 1, 2]), (1, 3))
        self.assertEqual(paired.interval(range(6)), (0, 5))
        self.assertEqual(paired.interval(range(10)), (1, 8))
        self.assertEqual(paired.interval([2.0]), (2.0, 2.0))

    def test_counts_that_never_differed_have_a_floor(self):
        self.assertEqual(paired.noise_of([1.0, 1.0], 0.01), 0.01)
        self.assertEqual(paired.verdict([1.0036], 0.005), "tie")
        self.assertEqual(paired.verdict([1.006], 0.005), "faster")

    def test_without_noise_nothing_is_claimed(self):
        self.assertEqual(paired.verdict([2.0] * 6, None), "unknown")
        self.assertEqual(paired.verdict([], 0.1), "none")


class LinesTest(unittest.TestCase):
    def test_a_line_comes_back(self):
        line = lines.format_line("PERF_SKIP", scenario="ab", reason="it's \"not\" here")
        self.assertEqual(
            lines.parse_line(line), ("PERF_SKIP", {"scenario": "ab", "reason": "it's \"not\" here"})
        )

    def test_a_kind_is_not_the_beginning_of_another(self):
        line = lines.format_line("PERF_META_ASYNC", sizes="64,1024")
        self.assertEqual(lines.parse_line(line), ("PERF_META_ASYNC", {"sizes": "64,1024"}))

    def test_empty_values_and_numbers(self):
        line = lines.format_line("PERF_META", flags="", load=0.123456789)
        self.assertEqual(lines.parse_line(line)[1], {"flags": "", "load": "0.123457"})

    def test_what_is_for_people_is_no_line(self):
        self.assertIsNone(lines.parse_line("took 3 s"))
        self.assertIsNone(lines.parse_line("PERFECT a=1"))
        self.assertIsNone(lines.parse_line(""))

    def test_wrong_lines_are_refused(self):
        with self.assertRaises(ValueError):
            lines.parse_line("PERF_RUN blank")
        with self.assertRaises(ValueError):
            lines.format_line("PERF_NONSENSE", a=1)

    def test_the_load_client_s_line(self):
        self.assertEqual(lines.numbers("wall_ns=1200 p50_ns=7"), {"wall_ns": 1200.0, "p50_ns": 7.0})


class SettingsTest(unittest.TestCase):
    def test_the_environment_wins(self):
        settings = Settings("quick", {"PERF_SECONDS": "3", "PERF_SIZES": "1,2"})
        self.assertEqual(settings.seconds, 3.0)
        self.assertEqual(settings.numbers("sizes"), [1, 2])
        self.assertEqual(settings.changed, {"SECONDS": 3.0, "SIZES": "1,2"})

    def test_repeats_default_to_six_and_are_even(self):
        self.assertEqual(Settings("full", {}).repeats, 6)
        with self.assertRaises(SystemExit):
            Settings("full", {"PERF_REPEATS": "5"})

    def test_what_cannot_be_is_named(self):
        for name, value in (
            ("SECONDS", "long"), ("SECONDS", "nan"), ("SECONDS", "-1"), ("SECONDS", "inf"), ("SECONDS", "0"),
            ("SIZES", "abc"), ("SIZES", ""), ("SIZES", "0"), ("SIZES", "64,64"), ("CONNECTIONS", "1,,2"),
            ("CONNECTIONS", "0"), ("SUBJECTS", "("), ("SERVER_CPU", "9999"), ("SERVER_CPU", "-1"), ("TIMEOUT", "0"),
            ("REPEATS", "five"), ("REPEATS", "5"), ("MICRO", "["), ("ROUND_TRIPS", "1.5"),
        ):  # fmt: skip
            with self.subTest(name=name, value=value), self.assertRaises(Wrong) as caught:
                Settings("full", {f"PERF_{name}": value})
            self.assertIn(f"PERF_{name}={value}", str(caught.exception))

    def test_a_name_that_is_none_is_refused(self):
        with self.assertRaises(Wrong) as caught:
            Settings("full", {"PERF_REPEAT": "2"})
        self.assertIn("PERF_REPEAT ", str(caught.exception))
        Settings("full", {"PERF_PAGER": "cat", "PATH": "/bin"})  # of Linux's perf(1), and of nobody

    def test_processors_are_those_that_may_be_used(self):
        settings = Settings("full", {})
        self.assertEqual(settings.server_cpu, allowed_processors()[0])
        self.assertIn(settings.client_cpu, allowed_processors())

    def test_every_parameter_is_an_attribute(self):
        for name in PARAMETERS:
            self.assertTrue(hasattr(Settings("full", {}), name.lower()))


class ProgressTest(unittest.TestCase):
    def test_time_left_follows_the_pace(self):
        now = [0.0]
        progress = Progress(100, io.StringIO(), lambda: now[0])
        self.assertEqual(progress.left(), 100)
        now[0] = 20.0
        progress.step(10, "a case")  # twice as slow as thought
        self.assertAlmostEqual(progress.left(), 180)

    def test_durations_for_people(self):
        self.assertEqual(show_seconds(59.4), "59 s")
        self.assertEqual(show_seconds(61), "1 min 01 s")
        self.assertEqual(show_seconds(3720), "1 h 02 min")


def pair(case, ours, ratio, noise=0.01, other="asio_epoll", measure="server_cpu_ns", reach=0.0, busy=0.0):
    return {
        "scenario": "async_tcp_echo",
        "case": case,
        "measure": measure,
        "ours": ours,
        "other": other,
        "ratio": ratio,
        "low": ratio * (1 - reach),
        "high": ratio * (1 + reach),
        "noise": noise,
        "busy": busy,
    }


class GoalsTest(unittest.TestCase):
    def goal(self, name):
        return next(each for each in goals.GOALS if each.name == name)

    def test_the_worst_case_decides(self):
        pairs = [pair("64B_100", "ours_epoll_receive", 1 / 0.85), pair("64B_10", "ours_epoll_receive", 1 / 0.95)]
        judged = goals.judge(self.goal("echo_cpu_epoll"), [], pairs)
        self.assertEqual((judged["verdict"], judged["case"], judged["cases"]), ("missed", "64B_10", 2))
        self.assertAlmostEqual(judged["value"], 0.95)

    def test_other_cases_and_backends_do_not_count(self):
        pairs = [
            pair("64B_100", "ours_epoll_receive", 1 / 0.85),
            pair("64B_1", "ours_epoll_receive", 1 / 0.99),
            pair("64B_100", "ours_io_uring_receive", 1 / 0.99),
            pair("64B_100", "ours_epoll_receive", 1 / 0.99, other="libuv"),
            pair("64B_100", "ours_epoll_receive", 1 / 0.99, measure="wall_ns"),
        ]
        self.assertEqual(goals.judge(self.goal("echo_cpu_epoll"), [], pairs)["verdict"], "met")

    def echo(self, cost, **more):
        pairs = [pair("64B_100", "ours_epoll_receive", 1 / cost, **more)]
        return goals.judge(self.goal("echo_cpu_epoll"), [], pairs)["verdict"]  # cost <= 0.89

    def test_what_lies_inside_the_noise_is_said(self):
        self.assertEqual(self.echo(0.87), "met")
        self.assertEqual(self.echo(0.885), "met_within_noise")
        self.assertEqual(self.echo(0.895), "missed_within_noise")
        self.assertEqual(self.echo(0.91), "missed")

    def test_rounds_that_do_not_agree_are_noise_too(self):
        self.assertEqual(self.echo(0.875, reach=0.02), "met_within_noise")
        self.assertEqual(self.echo(0.91, reach=0.025), "missed_within_noise")

    def test_a_noisy_run_cannot_tell(self):
        self.assertEqual(self.echo(0.88, noise=0.12), "cannot_tell")
        self.assertEqual(self.echo(0.90, noise=0.12), "cannot_tell")
        self.assertEqual(self.echo(0.88, noise=None), "cannot_tell")
        self.assertEqual(self.echo(0.5, noise=0.12), "met")
        self.assertEqual(self.echo(1.5, noise=0.12), "missed")

    def test_a_busy_machine_cannot_tell_what_clocks_say_but_what_was_counted(self):
        self.assertEqual(self.echo(0.5, busy=1.0), "cannot_tell")
        record = {"scenario": "instructions", "case": "epoll-100", "measure": "instructions"}
        record |= {"subject": "ours_epoll_read_some", "value": 200.0, "noise": 0.005, "busy": 1.0}
        self.assertEqual(goals.judge(self.goal("instructions_100"), [record], [])["verdict"], "met")

    def test_the_worst_verdict_decides_not_the_worst_value(self):
        pairs = [
            pair("64B_100", "ours_epoll_receive", 1 / 0.87),
            pair("64B_10", "ours_epoll_receive", 1 / 0.86, noise=0.2),
        ]
        judged = goals.judge(self.goal("echo_cpu_epoll"), [], pairs)
        self.assertEqual((judged["verdict"], judged["case"]), ("cannot_tell", "64B_10"))

    def test_a_goal_that_allows_noise(self):
        def judged(ratio, **more):
            pairs = [pair("64B_8", "ours_epoll_receive", ratio, other="tokio", measure="wall_ns", **more)]
            return goals.judge(self.goal("echo_wall_tokio"), [], pairs)["verdict"]

        self.assertEqual(judged(1.05), "met")
        self.assertEqual(judged(0.99, noise=0.02), "met")
        self.assertEqual(judged(0.97, noise=0.02), "missed")
        self.assertEqual(judged(0.97, noise=0.01, reach=0.035), "cannot_tell")
        # A noisier run does not pass more easily.
        self.assertEqual(judged(0.95, noise=0.12), "cannot_tell")

    def test_absolute_figures(self):
        record = {"scenario": "instructions", "case": "epoll-100", "measure": "instructions", "noise": 0.005}
        record["subject"] = "ours_epoll_read_some"
        goal = self.goal("instructions_100")
        for value, verdict in ((276, "met"), (299, "met_within_noise"), (301, "missed_within_noise"), (376, "missed")):
            self.assertEqual(goals.judge(goal, [{**record, "value": value}], [])["verdict"], verdict)

    def test_what_was_not_measured_is_not_met(self):
        for goal in goals.GOALS:
            self.assertEqual(goals.judge(goal, [], [])["verdict"], "unmeasured")


class SavedTest(unittest.TestCase):
    """Where a run is written, and what that file says."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.nothing = {"medians": [], "pairs": [], "noise": [], "skips": [], "goals": []}

    def save(self, kept):
        kept.write({}, Settings("quick", {}), report.Runs(), self.nothing)

    def test_has_its_name_only_when_it_is_complete(self):
        kept = saved.Saved(os.path.join(self.place, "run.json"))
        self.save(kept)
        self.assertEqual(os.listdir(self.place), ["run-partial.json"])
        self.save(kept)
        kept.finish()
        self.assertEqual(os.listdir(self.place), ["run.json"])

    def test_nothing_is_overwritten(self):
        for _ in range(2):
            saved.Saved(os.path.join(self.place, "run.json"))
        self.assertEqual(sorted(os.listdir(self.place)), ["run-partial-2.json", "run-partial.json"])
        self.save(kept := saved.Saved(os.path.join(self.place, "other.json")))
        kept.finish()
        with self.assertRaises(Wrong):
            saved.Saved(kept.file)

    def test_a_second_run_of_a_day_has_the_next_number(self):
        self.assertEqual(saved.free_name(self.place, "day-abc"), "day-abc-1")
        for name in ("day-abc-1.json", "day-abc-2-partial.json", "day-abc-30.json"):
            with open(os.path.join(self.place, name), "w"):
                pass
        self.assertEqual(saved.free_name(self.place, "day-abc"), "day-abc-3")
        self.assertEqual(saved.free_name(self.place, "day-abd"), "day-abd-1")

    def test_a_row_of_a_table_is_a_line_and_all_of_it_is_json(self):
        value = {"meta": {"a": 1, "b": "x"}, "cases": [{"name": "c", "figures": {"ours": [[1.5, 2], 3]}}], "none": []}
        text = saved.to_text(value)
        self.assertEqual(json.loads(text), value)
        self.assertIn('\n    "ours": [[1.5,2],3]\n', text)
        self.assertIn('\n  "b": "x"\n', text)

    def test_six_digits_are_kept(self):
        self.assertEqual([saved.rounded(each) for each in (1234.5678, 5.0, None, 7)], [1234.57, 5, None, 7])

    def test_a_published_run_is_small_and_says_what_it_depends_on(self):
        newest = data.newest(os.path.join(ROOT, "docs", "development", "perf-data"))
        self.assertLess(os.path.getsize(newest), 200_000)
        self.assertLessEqual({"date", "commit", "processor", "kernel", "compiler"}, data.Data(newest).meta.keys())


class CommandTest(unittest.TestCase):
    """What is wrong with the command line is said at once, without a traceback."""

    def run_suite(self, *words, **environment):
        """(status, standard output, standard error)"""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PERF_")}
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, {**clean, **environment}, clear=True):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    status = main(["--build", "/nonexistent", "--root", ROOT, *words])
                except SystemExit as ended:
                    status = ended.code
        return status, out.getvalue(), err.getvalue()

    def test_is_refused(self):
        for words, environment in (
            (["--scenario", "("], {}),
            (["--scenario", "no_such"], {}),
            (["--frobnicate"], {}),
            (["--save", "/tmp", "--no-save"], {}),
            (["--save", ROOT], {}),
            (["--raw", ROOT], {}),
            ([], {"PERF_SIZES": "abc"}),
            ([], {"PERF_REPEAT": "2"}),
        ):
            with self.subTest(words=words, environment=environment):
                status, _, said = self.run_suite("--check", *words, **environment)
                self.assertEqual(status, 2)
                self.assertTrue(said)

    def test_is_accepted(self):
        self.assertEqual(self.run_suite("--check", "--quick", "--scenario", "udp|micro")[0], 0)

    def test_a_build_that_nobody_ships_is_not_measured(self):
        status, _, said = self.run_suite("--quick", "--no-save")
        self.assertEqual((status, "only Release" in said), (2, True))

    def test_every_scenario_has_its_cases(self):
        for mode in ("--quick", "--full"):
            status, said, _ = self.run_suite("--list", mode)
            self.assertEqual(status, 0)
            for name in scenarios.SCENARIOS:
                if (name, mode) != ("instructions_io_uring", "--quick"):
                    self.assertRegex(said, rf"(?m)^{name}\b")

    def test_the_list_needs_no_build(self):
        status, said, _ = self.run_suite("--list", "--scenario", "tcp_echo")
        self.assertEqual(status, 0)
        self.assertIn("tcp_echo 64B: (ours) (asio) (bare)", said)


class MachineTest(unittest.TestCase):
    def test_the_build_must_be_release_and_plain(self):
        machine.check_build({"build_type": "Release", "flags": "-O3"})
        for meta in ({"build_type": "Debug", "flags": ""}, {"build_type": "Release", "flags": "-fsanitize=address"}):
            with self.assertRaises(Wrong):
                machine.check_build(meta)

    def test_flags_are_those_of_the_build(self):
        with tempfile.TemporaryDirectory() as place:
            with open(os.path.join(place, "CMakeCache.txt"), "w") as file:
                file.write("CMAKE_BUILD_TYPE:STRING=Debug\nCMAKE_CXX_FLAGS_DEBUG:STRING=-g\n"
                           "CMAKE_CXX_FLAGS_RELEASE:STRING=-O3\n")
            meta = machine.describe(ROOT, place)
        self.assertEqual((meta["build_type"], meta["flags"]), ("Debug", "-g"))

    def test_others_use_no_more_than_there_is(self):
        self.assertTrue(0 <= machine.busy(0.05) <= os.cpu_count())


class CompareTest(unittest.TestCase):
    def test_slower_beyond_the_noise_is_worse_and_a_tie_is_not(self):
        self.assertTrue(compare.worse({"measure": "server_cpu_ns", "ratio": 0.9, "verdict": "slower"}))
        self.assertFalse(compare.worse({"measure": "server_cpu_ns", "ratio": 0.99, "verdict": "tie"}))

    def test_a_difference_that_nobody_would_feel_is_not(self):
        slower = {"measure": "server_cpu_ns", "verdict": "slower"}
        self.assertFalse(compare.worse({**slower, "ratio": 1 / 1.009}))
        self.assertTrue(compare.worse({**slower, "ratio": 1 / 1.011}))

    def lost(self, *figures):
        """Runs of one case: what the new and the old build need in each, and what is lost at the end."""
        figures = iter(figures)

        class FakeSuite:
            def __init__(self):
                self.results = {"pairs": []}

            def run(self, cases):
                ratio = next(figures)
                for each in cases:
                    verdict = "slower" if ratio < 1 else "tie"
                    self.results["pairs"].append(
                        {"case": each.name, "measure": "server_cpu_ns", "ratio": ratio, "verdict": verdict}
                    )

        case = Case("compare", "epoll_1", [], None, ["server_cpu_ns"])
        with contextlib.redirect_stdout(io.StringIO()):
            _, lost = compare.lost_twice(FakeSuite, [case])
        self.assertIsNone(next(figures, None))
        return len(lost)

    def test_who_loses_runs_once_more(self):
        self.assertEqual(self.lost(1.0), 0)
        self.assertEqual(self.lost(0.9, 1.0), 0)
        self.assertEqual(self.lost(0.9, 0.95), 1)

    def test_instructions_may_grow_by_a_hundredth(self):
        grown = {"measure": "instructions", "verdict": "slower"}
        self.assertFalse(compare.worse({**grown, "ratio": 300 / 302}))
        self.assertTrue(compare.worse({**grown, "ratio": 300 / 304}))


class SuiteTest(unittest.TestCase):
    """The whole way, with programs that are not there and figures that are made up."""

    def setUp(self):
        self.settings = Settings("quick", {"PERF_REPEATS": "4"})
        self.tools = Tools("/nonexistent", "/nonexistent", self.settings)
        self.out = io.StringIO()
        self.suite = Suite(self.tools, self.settings, self.out, look=lambda: 0.0)
        self.order = []

    def case(self, cost, **more):
        subjects = [
            Subject(name, ["true"], name.startswith("ours"), backend="io_uring" if "uring" in name else "epoll")
            for name in cost
        ]

        def measure(subject, amount):
            self.order.append(subject.name)
            value = cost[subject.twin or subject.name]
            if isinstance(value, Exception):
                raise value
            return {"server_cpu_ns": value * (1 + len(self.order) * 1e-4)}

        return Case("s", "c", self.tools.chosen(subjects), measure, ["server_cpu_ns"], **more)

    def kinds(self):
        found = {}
        for line in self.out.getvalue().splitlines():
            kind, fields = lines.parse_line(line)
            found.setdefault(kind, []).append(fields)
        return found

    def run_case(self, case):
        self.suite.run_case(case, Progress(1, io.StringIO()))
        return self.kinds()

    def test_from_runs_to_verdicts(self):
        found = self.run_case(self.case({"ours": 100.0, "asio": 120.0, "twin": 100.0}))
        self.assertEqual(len(found["PERF_RUN"]), 16)
        self.assertEqual({each["subject"] for each in found["PERF_MEDIAN"]}, {"ours", "asio", "twin", "control_ours"})
        verdicts = {each["other"]: each["verdict"] for each in found["PERF_PAIRED_MEDIAN"]}
        self.assertEqual(verdicts, {"asio": "faster", "twin": "tie"})
        self.assertEqual([each["subject"] for each in found["PERF_NOISE"]], ["ours"])

    def test_rounds_turn_round(self):
        self.run_case(self.case({"ours": 1.0, "asio": 1.0}))
        forwards = ["ours", "asio", "control_ours"]
        self.assertEqual(self.order, (forwards + forwards[::-1]) * 2)

    def test_each_backend_has_its_control(self):
        figures = {"ours_epoll_a": 1.0, "ours_epoll_b": 1.0, "ours_uring_a": 1.0, "asio": 2.0}
        case = self.case(figures)
        noise = {"epoll": 1.0, "io_uring": 1.3}
        plain = case.measure

        def measure(subject, amount):
            found = plain(subject, amount)
            factor = noise[subject.backend] if subject.twin else 1.0
            return {name: value * factor for name, value in found.items()}

        case.measure = measure
        found = self.run_case(case)
        self.assertEqual({each["subject"] for each in found["PERF_NOISE"]}, {"ours_epoll_a", "ours_uring_a"})
        noises = {each["ours"]: float(each["noise"]) for each in found["PERF_PAIRED_MEDIAN"]}
        self.assertLess(noises["ours_epoll_a"], 0.01)
        self.assertEqual(noises["ours_epoll_a"], noises["ours_epoll_b"])
        self.assertGreater(noises["ours_uring_a"], 0.25)

    def test_who_fails_is_skipped_and_the_others_go_on(self):
        found = self.run_case(self.case({"ours": 1.0, "asio": programs.Failed("no such port")}))
        self.assertEqual([each["reason"] for each in found["PERF_SKIP"]], ["no such port"])
        self.assertEqual(self.order.count("asio"), 1)
        self.assertEqual(self.order.count("ours"), 4)
        self.assertNotIn("PERF_PAIRED_MEDIAN", found)

    def test_what_nobody_thought_of_ends_one_subject_only(self):
        found = self.run_case(self.case({"ours": 1.0, "asio": KeyError("p50_ns")}))
        self.assertIn("KeyError", found["PERF_SKIP"][0]["reason"])
        self.assertEqual(self.order.count("ours"), 4)

    def test_no_other_program_lends_its_noise_when_ours_fails(self):
        # The control is the twin of the first of ours and of nobody else.
        figures = {"ours_epoll_a": programs.Failed("gone"), "ours_epoll_b": 1.0, "asio": 2.0}
        found = self.run_case(self.case(figures))
        self.assertNotIn("PERF_NOISE", found)
        self.assertEqual({each["verdict"] for each in found["PERF_PAIRED_MEDIAN"]}, {"unknown"})

    def test_one_amount_for_everybody(self):
        asked = []
        case = self.case({"ours": 1.0, "asio": 1.0}, calibrate=lambda s: asked.append(s.name) or 77)
        found = self.run_case(case)
        self.assertEqual(asked, ["asio"])
        self.assertEqual({each["amount"] for each in found["PERF_RUN"]}, {"77"})

    def test_the_next_one_sets_the_amount_when_the_first_fails(self):
        def calibrate(subject):
            if subject.name != "ours":
                raise programs.Failed("refused")
            return 5

        found = self.run_case(self.case({"ours": 1.0, "asio": 1.0, "libuv": 1.0}, calibrate=calibrate))
        self.assertEqual({each["amount"] for each in found["PERF_RUN"]}, {"5"})

    def test_counts_need_one_round_and_have_a_floor(self):
        case = self.case({"ours": 300.0, "asio": 2700.0, "twin": 301.0}, repeatable=True)
        case.main = ["instructions"]
        plain = case.measure
        case.measure = lambda subject, amount: {"instructions": plain(subject, amount)["server_cpu_ns"]}
        found = self.run_case(case)
        self.assertEqual(len(found["PERF_RUN"]), 4)
        verdicts = {each["other"]: each["verdict"] for each in found["PERF_PAIRED_MEDIAN"]}
        self.assertEqual(verdicts, {"asio": "faster", "twin": "tie"})

    def test_a_busy_machine_is_noted(self):
        self.suite.look = lambda: 1.5
        found = self.run_case(self.case({"ours": 1.0, "asio": 2.0}))
        self.assertEqual(found["PERF_NOISE"][0]["busy"], "1.5")
        self.assertEqual(self.suite.disturbed, ["s c"])

    def test_each_case_is_saved_when_it_is_over(self):
        runs = []
        self.suite.save = lambda: runs.append(self.out.getvalue().count("PERF_RUN"))
        self.suite.run([self.case({"ours": 1.0}), self.case({"ours": 1.0})])
        self.assertEqual(runs, [8, 16])

    def test_what_is_saved_says_the_same(self):
        case = self.case({"ours": 1.0, "asio": 2.0, "libuv": 1.0, "gone": programs.Failed("no such port")})
        plain = case.measure
        case.measure = lambda *of: (found := plain(*of)) | {"p50_ns": 2 * found["server_cpu_ns"]}
        self.run_case(case)
        self.suite.judge()
        with tempfile.TemporaryDirectory() as place:
            kept = saved.Saved(os.path.join(place, "run.json"))
            kept.write({"commit": "abc"}, self.settings, self.suite.runs, self.suite.results)
            run = data.Data(kept.finish())
        key = "s", "c", "server_cpu_ns"
        self.assertEqual(set(run.medians[key]), {"ours", "asio", "libuv", "control_ours"})
        for each in self.suite.results["medians"]:
            self.assertAlmostEqual(run.medians["s", "c", each["measure"]][each["subject"]], each["value"], places=4)
        for each in self.suite.results["pairs"]:
            self.assertEqual(run.verdict(key, each["ours"], each["other"]), each["verdict"])
            self.assertAlmostEqual(run.cost(key, each["other"], each["ours"])[0], each["ratio"], places=4)
        self.assertEqual(len(run.rounds[key]["ours"]), 4)
        self.assertEqual(len(run.rounds["s", "c", "p50_ns"]["ours"]), 1)  # nobody is compared by it
        self.assertEqual(run.meta, {"commit": "abc"})
        self.assertEqual(run.settings["repeats"], 4)

    def test_lines_are_kept_as_well_where_that_is_asked_for(self):
        self.suite.raw = io.StringIO()
        self.run_case(self.case({"ours": 1.0}))
        self.assertEqual(self.suite.raw.getvalue(), self.out.getvalue())

    def test_a_program_that_is_not_there_has_a_reason(self):
        missing = {each.name: each.missing for each in self.tools.echo(4096)}
        self.assertIn("libuv1-dev", missing["libuv"])
        self.assertFalse(any(each.endswith("install ") for each in missing.values()))
        self.assertTrue(missing["tokio"])

    def test_who_takes_too_long_is_asked_to_end_first(self):
        # As scripts/perf_check.sh, which has a server to end.
        with tempfile.TemporaryDirectory() as place:
            told = os.path.join(place, "told")
            script = f"trap 'touch {told}; exit' TERM; while :; do sleep 0.05; done"
            with self.assertRaises(programs.Failed):
                programs.run_text(["bash", "-c", script], None, 2)
            self.assertTrue(os.path.exists(told))

    def test_a_server_that_does_not_start_says_why(self):
        script = "import sys; print('no port', file=sys.stderr); sys.exit(3)"
        with self.assertRaises(programs.Failed) as caught:
            with programs.Server([sys.executable, "-c", script], None):
                pass
        self.assertIn("no port", str(caught.exception))


class TablesTest(unittest.TestCase):
    """From what the suite wrote to the README."""

    META = {
        "date": "2026-01-02", "began": "2026-01-02T03:04:05+00:00", "commit": "abc", "processor": "P",
        "processors": 2, "kernel": "6", "compiler": "c++", "flags": "-O3", "boost": "1.81", "tokio": "1",
        "libuv": "1", "libevent": "2", "busy": 0.0, "complete": True,
    }  # fmt: skip

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def write(self, name="run", **meta):
        settings = Settings("quick", {"PERF_REPEATS": "6"})
        suite = Suite(Tools("/nonexistent", "/nonexistent", settings), settings, io.StringIO(), look=lambda: 0.0)
        cost = {"ours_epoll_read_some": 80.0, "ours_io_uring_receive": 99.999, "asio_epoll": 100.0, "libuv": 90.0}
        subjects = [
            Subject(each, ["true"], each.startswith("ours"), backend="io_uring" if "uring" in each else "epoll")
            for each in cost
        ]
        slower = itertools.count(100)  # the machine gets slower all the time: only pairs know

        def measure(subject, _):
            return {"server_cpu_ns": cost[subject.twin or subject.name] * (1 + 1e-4 * next(slower))}

        case = Case("async_tcp_echo", "64B_100", suite.tools.chosen(subjects), measure, ["server_cpu_ns"])
        suite.run_case(case, Progress(1, io.StringIO()))
        kept = saved.Saved(os.path.join(self.place, f"{name}.json"))
        kept.write({**self.META, **meta}, settings, suite.runs, suite.results)
        return kept.finish()

    def test_a_table_has_paired_figures_and_says_what_is_a_tie(self):
        text = tables.markdown(data.Data(self.write()), self.place)
        self.assertIn("| libsimplenet, epoll, `read_some` | 0.80 |", text)
        self.assertIn("| libsimplenet, io_uring, `receive()` | ≈ 1.00 |", text)
        self.assertIn("| libuv | 0.90 |", text)
        self.assertNotIn("tokio, current thread", text)  # did not run
        self.assertNotIn("control", text)
        self.assertNotIn("Pieces", text)  # nothing of it was measured

    def test_a_table_says_where_it_comes_from(self):
        text = tables.markdown(data.Data(self.write()), self.place)
        for said in ("2026-01-02", "commit abc", "[run.json](run.json)", "generate_perf_figures.py"):
            self.assertIn(said, text)
        with open(os.path.join(self.place, "echo_64.svg"), "w"):
            pass
        shown = tables.markdown(data.Data(self.write("drawn")), self.place, self.place)
        self.assertIn("(echo_64.svg)", shown)
        self.assertNotIn("micro.svg", shown)
        self.assertIn("not completed", tables.markdown(data.Data(self.write("half", complete=False)), self.place))

    def test_counts_have_a_column_for_each_call(self):
        run = data.Data(self.write())
        for name, value in (("system_calls", 3.0), ("calls_send", 1.0), ("calls_recv", 2.0)):
            run.medians["system_calls", "echo_64B_1", name] = {"ours_epoll_receive": value}
        run.medians["system_calls", "echo_64B_1", "calls_brk"] = {"libuv": 0.01}
        text = tables.counts(run)
        self.assertIn("| echo, 64B, 1 | recv | send | brk | all |", text)
        self.assertIn("| libsimplenet, epoll, `receive()` | 2.00 | 1.00 |  | 3.00 |", text)

    def test_the_newest_is_the_latest_complete_one(self):
        self.assertIsNone(data.newest(self.place))
        self.write("z-early", began="2026-01-02T03:04:05+00:00")
        self.write("a-late", began="2026-01-02T13:04:05+00:00")
        self.write("b-partial", began="2026-01-03T13:04:05+00:00", complete=False)
        os.makedirs(os.path.join(self.place, "empty"))
        self.assertEqual(data.newest(self.place), os.path.join(self.place, "a-late.json"))

    def test_tables_replace_what_is_between_the_marks(self):
        before = f"# A\n\n{tables.BEGIN}\nold\n{tables.END}\n\nend\n"
        once = tables.update(before, "new\n")
        self.assertEqual(once, f"# A\n\n{tables.BEGIN}\n\nnew\n\n{tables.END}\n\nend\n")
        self.assertEqual(tables.update(once, "new\n"), once)
        with self.assertRaises(ValueError):
            tables.update("# A\n", "new\n")

    def test_the_readme_has_a_place_for_them(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            tables.update(file.read(), "")


class ProgramsTest(unittest.TestCase):
    def test_a_server_ends_with_the_suite_even_when_that_is_killed(self):
        suite = (
            "import sys; from suite import programs\n"
            "script = 'import time; print(1, flush=True); time.sleep(60)'\n"
            "with programs.Server([sys.executable, '-c', script], None) as server:\n"
            "    print(server.pid, flush=True); sys.stdin.read()\n"
        )
        with subprocess.Popen([sys.executable, "-B", "-c", suite], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            server = int(run.stdout.readline())
            run.send_signal(signal.SIGKILL)
        give_up = time.monotonic() + 20
        while os.path.exists(f"/proc/{server}") and time.monotonic() < give_up:
            with open(f"/proc/{server}/stat") as file:
                if file.read().rsplit(") ", 1)[1].startswith("Z"):
                    break  # ended; whoever inherited it has not asked yet
            time.sleep(0.01)
        else:
            self.assertFalse(os.path.exists(f"/proc/{server}"))


if __name__ == "__main__":
    unittest.main()
