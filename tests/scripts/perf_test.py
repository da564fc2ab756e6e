"""The arithmetic of the performance suite, its lines, its order of runs and its goals."""

import io
import itertools
import math
import os
import sys
import tempfile
import unittest

from perf import compare, goals, lines, paired, programs, report
from perf.progress import Progress, show_seconds
from perf.scenarios import Case
from perf.settings import PARAMETERS, Settings
from perf.subjects import CONTROL, Subject, Tools
from perf.suite import Suite


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
        # Of many runs of six rounds of equals, at most some 5 in 100 may be called a difference; the
        # estimate of the noise is rough with six, so allow twice that.
        import random

        source = random.Random(1)
        wrong = 0
        for _ in range(1000):
            control = [math.exp(source.gauss(0, 0.02)) for _ in range(6)]
            equals = [math.exp(source.gauss(0, 0.02)) for _ in range(6)]
            wrong += paired.verdict(paired.median(equals), paired.noise_of(control)) != "tie"
        self.assertLess(wrong, 150)

    def test_inside_the_noise_is_a_tie_on_both_sides(self):
        self.assertEqual(paired.verdict(1.02, 0.02), "tie")
        self.assertEqual(paired.verdict(1 / 1.02, 0.02), "tie")
        self.assertEqual(paired.verdict(1.03, 0.02), "faster")
        self.assertEqual(paired.verdict(0.97, 0.02), "slower")

    def test_without_noise_nothing_is_claimed(self):
        self.assertEqual(paired.verdict(2.0, None), "unknown")
        self.assertEqual(paired.verdict(None, 0.1), "none")


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

    def test_a_wrong_number_is_named(self):
        with self.assertRaises(SystemExit) as caught:
            Settings("full", {"PERF_SECONDS": "long"})
        self.assertIn("PERF_SECONDS", str(caught.exception))

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


def pair(case, ours, ratio, noise=0.02, other="asio_epoll", measure="server_cpu_ns"):
    return {
        "scenario": "async_tcp_echo",
        "case": case,
        "measure": measure,
        "ours": ours,
        "other": other,
        "ratio": ratio,
        "noise": noise,
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

    def test_nearly_is_said(self):
        pairs = [pair("64B_100", "ours_epoll_receive", 1 / 0.90)]
        judged = goals.judge(self.goal("echo_cpu_epoll"), [], pairs)
        self.assertEqual(judged["verdict"], "missed_within_noise")

    def test_a_goal_that_allows_noise(self):
        near = [pair("64B_8", "ours_epoll_receive", 0.99, other="tokio", measure="wall_ns")]
        far = [pair("64B_8", "ours_epoll_receive", 0.95, other="tokio", measure="wall_ns")]
        self.assertEqual(goals.judge(self.goal("echo_wall_tokio"), [], near)["verdict"], "met")
        self.assertEqual(goals.judge(self.goal("echo_wall_tokio"), [], far)["verdict"], "missed")

    def test_absolute_figures(self):
        record = {"scenario": "instructions", "case": "epoll-100", "measure": "instructions"}
        record["subject"] = "ours_epoll_read_some"
        goal = self.goal("instructions_100")
        self.assertEqual(goals.judge(goal, [{**record, "value": 276.0}], [])["verdict"], "met")
        self.assertEqual(goals.judge(goal, [{**record, "value": 376.0}], [])["verdict"], "missed")

    def test_what_was_not_measured_is_not_met(self):
        for goal in goals.GOALS:
            self.assertEqual(goals.judge(goal, [], [])["verdict"], "unmeasured")


class CompareTest(unittest.TestCase):
    def test_slower_beyond_the_noise_is_worse_and_a_tie_is_not(self):
        self.assertTrue(compare.worse({"measure": "server_cpu_ns", "ratio": 0.9, "verdict": "slower"}))
        self.assertFalse(compare.worse({"measure": "server_cpu_ns", "ratio": 0.99, "verdict": "tie"}))

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
        self.suite = Suite(self.tools, self.settings, self.out)
        self.order = []

    def case(self, cost, **more):
        subjects = [Subject(name, ["true"], ours=name.startswith("ours")) for name in cost if name != CONTROL]

        def measure(subject, amount):
            self.order.append(subject.name)
            value = cost[subject.name]
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
        found = self.run_case(self.case({"ours": 100.0, "asio": 120.0, "twin": 100.0, CONTROL: 100.0}))
        self.assertEqual(len(found["PERF_RUN"]), 16)
        self.assertEqual({each["subject"] for each in found["PERF_MEDIAN"]}, {"ours", "asio", "twin", CONTROL})
        verdicts = {each["other"]: each["verdict"] for each in found["PERF_PAIRED_MEDIAN"]}
        self.assertEqual(verdicts, {"asio": "faster", "twin": "tie"})
        self.assertEqual(len(found["PERF_NOISE"]), 1)

    def test_rounds_turn_round(self):
        self.run_case(self.case({"ours": 1.0, "asio": 1.0, CONTROL: 1.0}))
        forwards = ["ours", "asio", CONTROL]
        self.assertEqual(self.order, (forwards + forwards[::-1]) * 2)

    def test_who_fails_is_skipped_and_the_others_go_on(self):
        found = self.run_case(
            self.case({"ours": 1.0, "asio": programs.Failed("no such port"), CONTROL: 1.0})
        )
        self.assertEqual([each["reason"] for each in found["PERF_SKIP"]], ["no such port"])
        self.assertEqual(self.order.count("asio"), 1)
        self.assertEqual(self.order.count("ours"), 4)
        self.assertNotIn("PERF_PAIRED_MEDIAN", found)

    def test_one_amount_for_everybody(self):
        asked = []
        case = self.case({"ours": 1.0, "asio": 1.0, CONTROL: 1.0}, calibrate=lambda s: asked.append(s.name) or 77)
        found = self.run_case(case)
        self.assertEqual(asked, ["asio"])
        self.assertEqual({each["amount"] for each in found["PERF_RUN"]}, {"77"})

    def test_counts_need_one_round_and_no_control(self):
        case = self.case({"ours": 300.0, "asio": 2700.0, CONTROL: 300.0}, repeatable=True)
        found = self.run_case(case)
        self.assertEqual(len(found["PERF_RUN"]), 3)
        self.assertEqual(found["PERF_PAIRED_MEDIAN"][0]["verdict"], "faster")

    def test_files(self):
        self.run_case(self.case({"ours": 1.0, "asio": 2.0, CONTROL: 1.0}))
        self.suite.judge()
        with tempfile.TemporaryDirectory() as place:
            report.write(place, {}, self.settings, self.suite.runs, self.suite.results, self.suite.text)
            self.assertEqual(
                sorted(os.listdir(place)), ["medians.csv", "output.txt", "pairs.csv", "runs.csv", "summary.json"]
            )
            with open(os.path.join(place, "runs.csv")) as file:
                self.assertEqual(len(file.readlines()), 1 + 12)

    def test_a_program_that_is_not_there_has_a_reason(self):
        missing = {each.name: each.missing for each in self.tools.echo(4096)}
        self.assertIn("libuv1-dev", missing["libuv"])
        self.assertTrue(missing["tokio"])

    def test_a_server_that_does_not_start_says_why(self):
        script = "import sys; print('no port', file=sys.stderr); sys.exit(3)"
        with self.assertRaises(programs.Failed) as caught:
            with programs.Server([sys.executable, "-c", script], None):
                pass
        self.assertIn("no port", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
