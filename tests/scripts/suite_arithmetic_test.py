"""The arithmetic of the performance suite: pairs, noise, verdicts and goals."""

import itertools
import math
import random
import unittest

from suite import goals, paired


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
        # The machine became three times slower between the rounds, which medians alone do not show.
        ours, other = {0: 100, 1: 300}, {0: 110, 1: 330}
        for ratio in paired.paired_ratios(ours, other):
            self.assertAlmostEqual(ratio, 1.1)

    def test_a_round_that_one_side_lacks_is_left_out(self):
        self.assertEqual(paired.paired_ratios({0: 1.0, 2: 1.0}, {0: 2.0, 1: 9.0}), [2.0])
        self.assertEqual(paired.paired_ratios({}, {0: 2.0}), [])

    def test_no_noise_without_a_control(self):
        self.assertIsNone(paired.noise_of([]))

    def test_noise_covers_the_control(self):
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

    def test_noise_covers_its_stated_share(self):
        # In 5 of 100 runs of six rounds, equals may be called different, even if the other program is less
        # steady than ours and the control.
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

    def test_rounds_that_disagree_are_a_tie(self):
        self.assertEqual(paired.verdict([1.04, 1.05, 1.06, 1.04, 1.05, 0.99], 0.01), "tie")
        self.assertEqual(paired.verdict([1.04, 1.05, 1.06, 1.04, 1.05, 1.9], 0.01), "faster")

    def test_the_interval_drops_as_many_rounds_as_their_number_allows(self):
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

    def test_differences_inside_the_noise_are_marked(self):
        self.assertEqual(self.echo(0.87), "met")
        self.assertEqual(self.echo(0.885), "met_within_noise")
        self.assertEqual(self.echo(0.895), "missed_within_noise")
        self.assertEqual(self.echo(0.91), "missed")

    def test_rounds_that_disagree_are_noise_too(self):
        self.assertEqual(self.echo(0.875, reach=0.02), "met_within_noise")
        self.assertEqual(self.echo(0.91, reach=0.025), "missed_within_noise")

    def test_a_noisy_run_cannot_tell(self):
        self.assertEqual(self.echo(0.88, noise=0.12), "cannot_tell")
        self.assertEqual(self.echo(0.90, noise=0.12), "cannot_tell")
        self.assertEqual(self.echo(0.88, noise=None), "cannot_tell")
        self.assertEqual(self.echo(0.5, noise=0.12), "met")
        self.assertEqual(self.echo(1.5, noise=0.12), "missed")

    def test_a_busy_machine_invalidates_times_but_not_counts(self):
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
        # A noisier run must not pass more easily.
        self.assertEqual(judged(0.95, noise=0.12), "cannot_tell")

    def test_absolute_figures(self):
        record = {"scenario": "instructions", "case": "epoll-100", "measure": "instructions", "noise": 0.005}
        record["subject"] = "ours_epoll_read_some"
        goal = self.goal("instructions_100")
        for value, verdict in ((276, "met"), (299, "met_within_noise"), (301, "missed_within_noise"), (376, "missed")):
            self.assertEqual(goals.judge(goal, [{**record, "value": value}], [])["verdict"], verdict)

    def test_a_goal_that_was_not_measured_is_not_met(self):
        for goal in goals.GOALS:
            self.assertEqual(goals.judge(goal, [], [])["verdict"], "unmeasured")


if __name__ == "__main__":
    unittest.main()
