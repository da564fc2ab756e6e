"""What the performance suite reads and prints: its lines, its parameters, its command line, the machine."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

from suite import lines, machine, scenarios
from suite.progress import Progress, show_seconds
from suite.run import main
from suite.settings import PARAMETERS, Settings, Wrong, allowed_processors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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

    def test_text_for_people_is_not_a_result_line(self):
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

    def test_impossible_values_are_named(self):
        for name, value in (
            ("SECONDS", "long"), ("SECONDS", "nan"), ("SECONDS", "-1"), ("SECONDS", "inf"), ("SECONDS", "0"),
            ("SIZES", "abc"), ("SIZES", ""), ("SIZES", "0"), ("SIZES", "64,64"), ("CONNECTIONS", "1,,2"),
            ("CONNECTIONS", "0"), ("SUBJECTS", "("), ("SERVER_CPU", "9999"), ("SERVER_CPU", "-1"), ("TIMEOUT", "0"),
            ("REPEATS", "five"), ("REPEATS", "5"), ("MICRO", "["), ("ROUND_TRIPS", "1.5"),
        ):  # fmt: skip
            with self.subTest(name=name, value=value), self.assertRaises(Wrong) as caught:
                Settings("full", {f"PERF_{name}": value})
            self.assertIn(f"PERF_{name}={value}", str(caught.exception))

    def test_an_unknown_name_is_refused(self):
        with self.assertRaises(Wrong) as caught:
            Settings("full", {"PERF_REPEAT": "2"})
        self.assertIn("PERF_REPEAT ", str(caught.exception))
        Settings("full", {"PERF_PAGER": "cat", "PATH": "/bin"})  # of Linux's perf(1), not of the suite

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
        progress.step(10, "a case")  # takes twice the estimate
        self.assertAlmostEqual(progress.left(), 180)

    def test_durations_for_people(self):
        self.assertEqual(show_seconds(59.4), "59 s")
        self.assertEqual(show_seconds(61), "1 min 01 s")
        self.assertEqual(show_seconds(3720), "1 h 02 min")


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
                status, _, said = self.run_suite("--plan", *words, **environment)
                self.assertEqual(status, 2)
                self.assertTrue(said)

    def test_is_accepted(self):
        self.assertEqual(self.run_suite("--plan", "--quick", "--scenario", "udp|micro")[:2],
                         (0, "plan 0 1 /nonexistent\n"))

    def test_the_plan_lists_what_to_install_and_build_first(self):
        self.assertEqual(self.run_suite("--plan", "--install", "--no-build")[1], "plan 1 0 /nonexistent\n")
        self.assertEqual(self.run_suite("--plan", "--list")[1], "plan 0 0 /nonexistent\n")

    def test_a_build_that_is_not_shipped_is_not_measured(self):
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

    def test_other_programs_use_no_more_processors_than_available(self):
        self.assertTrue(0 <= machine.busy(0.05) <= os.cpu_count())


if __name__ == "__main__":
    unittest.main()
