"""The order of the runs of the performance suite, and the programs that it starts."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from suite import compare, data, lines, programs, saved
from suite.progress import Progress
from suite.run import Suite
from suite.scenarios.cases import Case
from suite.settings import Settings
from suite.subjects import Subject, Tools


def setUpModule():
    """Nothing here has sockets that the kernel must finish with."""
    patch = mock.patch.object(programs, "settle", lambda: None)
    patch.start()
    unittest.addModuleCleanup(patch.stop)


class CompareTest(unittest.TestCase):
    def test_slower_beyond_the_noise_is_worse_and_a_tie_is_not(self):
        self.assertTrue(compare.worse({"measure": "server_cpu_ns", "ratio": 0.9, "verdict": "slower"}))
        self.assertFalse(compare.worse({"measure": "server_cpu_ns", "ratio": 0.99, "verdict": "tie"}))

    def test_an_imperceptible_difference_is_not_worse(self):
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

    def test_a_loser_runs_once_more(self):
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

    def test_rounds_alternate_the_order(self):
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

    def test_a_failing_program_is_skipped_and_the_others_continue(self):
        found = self.run_case(self.case({"ours": 1.0, "asio": programs.Failed("no such port")}))
        self.assertEqual([each["reason"] for each in found["PERF_SKIP"]], ["no such port"])
        self.assertEqual(self.order.count("asio"), 1)
        self.assertEqual(self.order.count("ours"), 4)
        self.assertNotIn("PERF_PAIRED_MEDIAN", found)

    def test_an_unexpected_error_ends_only_one_subject(self):
        found = self.run_case(self.case({"ours": 1.0, "asio": KeyError("p50_ns")}))
        self.assertIn("KeyError", found["PERF_SKIP"][0]["reason"])
        self.assertEqual(self.order.count("ours"), 4)

    def test_no_other_program_provides_the_noise_if_ours_fails(self):
        # The control belongs to the first subject of ours, and to no other program.
        figures = {"ours_epoll_a": programs.Failed("gone"), "ours_epoll_b": 1.0, "asio": 2.0}
        found = self.run_case(self.case(figures))
        self.assertNotIn("PERF_NOISE", found)
        self.assertEqual({each["verdict"] for each in found["PERF_PAIRED_MEDIAN"]}, {"unknown"})

    def test_one_amount_for_all_programs(self):
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

    def test_each_case_is_saved_when_it_ends(self):
        runs = []
        self.suite.save = lambda: runs.append(self.out.getvalue().count("PERF_RUN"))
        self.suite.run([self.case({"ours": 1.0}), self.case({"ours": 1.0})])
        self.assertEqual(runs, [8, 16])

    def test_saved_results_say_the_same(self):
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

    def test_lines_are_kept_on_request(self):
        self.suite.raw = io.StringIO()
        self.run_case(self.case({"ours": 1.0}))
        self.assertEqual(self.suite.raw.getvalue(), self.out.getvalue())

    def test_a_missing_program_is_reported_with_the_reason(self):
        missing = {each.name: each.missing for each in self.tools.echo(4096)}
        self.assertIn("libuv1-dev", missing["libuv"])
        self.assertFalse(any(each.endswith("install ") for each in missing.values()))
        self.assertTrue(missing["tokio"])

    def test_a_program_that_takes_too_long_is_first_asked_to_end(self):
        # Like scripts/perf_check.sh, which has a server to end.
        with tempfile.TemporaryDirectory() as place:
            told = os.path.join(place, "told")
            script = f"trap 'touch {told}; exit' TERM; while :; do sleep 0.05; done"
            with self.assertRaises(programs.Failed):
                programs.run_text(["bash", "-c", script], None, 2)
            self.assertTrue(os.path.exists(told))

    def test_a_server_that_does_not_start_is_reported_with_the_reason(self):
        script = "import sys; print('no port', file=sys.stderr); sys.exit(3)"
        with self.assertRaises(programs.Failed) as caught:
            with programs.Server([sys.executable, "-c", script], None):
                pass
        self.assertIn("no port", str(caught.exception))


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
                    break  # ended; a process that inherited it has not reacted yet
            time.sleep(0.01)
        else:
            self.assertFalse(os.path.exists(f"/proc/{server}"))


if __name__ == "__main__":
    unittest.main()
