"""What a run of the performance suite leaves, and the tables that come from it."""

import io
import itertools
import json
import os
import tempfile
import unittest
from unittest import mock

from suite import data, programs, report, saved, tables
from suite.progress import Progress
from suite.run import Suite
from suite.scenarios.cases import Case
from suite.settings import Settings, Wrong
from suite.subjects import Subject, Tools

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def setUpModule():
    """Nothing here has sockets that the kernel must finish with."""
    patch = mock.patch.object(programs, "settle", lambda: None)
    patch.start()
    unittest.addModuleCleanup(patch.stop)


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
        self.assertEqual(saved.free_name("day-abc", self.place), "day-abc-1")
        for name in ("day-abc-1.json", "day-abc-2-partial.json", "day-abc-30.json"):
            with open(os.path.join(self.place, name), "w"):
                pass
        self.assertEqual(saved.free_name("day-abc", self.place), "day-abc-3")
        self.assertEqual(saved.free_name("day-abd", "/nonexistent", self.place), "day-abd-1")

    def test_a_row_of_a_table_is_a_line_and_all_of_it_is_json(self):
        value = {"meta": {"a": 1, "b": "x"}, "cases": [{"name": "c", "figures": {"ours": [[1.5, 2], 3]}}], "none": []}
        text = saved.to_text(value)
        self.assertEqual(json.loads(text), value)
        self.assertIn('\n    "ours": [[1.5,2],3]\n', text)
        self.assertIn('\n  "b": "x"\n', text)

    def test_six_digits_are_kept(self):
        self.assertEqual([saved.rounded(each) for each in (1234.5678, 5.0, None, 7)], [1234.57, 5, None, 7])

    def test_a_published_run_is_small_and_says_what_it_depends_on(self):
        newest = data.newest(os.path.join(ROOT, "docs", "development", "perf-data"), "async_tcp_echo")
        self.assertLess(os.path.getsize(newest), 200_000)
        self.assertLessEqual({"date", "commit", "processor", "kernel", "compiler"}, data.Data(newest).meta.keys())


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

    ECHO = {"ours_epoll_read_some": 80.0, "ours_io_uring_receive": 99.999, "asio_epoll": 100.0, "libuv": 90.0}

    def write(self, name="run", where=("async_tcp_echo", "64B_100"), measured="server_cpu_ns", cost=None, **meta):
        settings = Settings("quick", {"PERF_REPEATS": "6"})
        suite = Suite(Tools("/nonexistent", "/nonexistent", settings), settings, io.StringIO(), look=lambda: 0.0)
        cost = cost or self.ECHO
        subjects = [
            Subject(each, ["true"], each.startswith("ours"), backend="io_uring" if "uring" in each else "epoll")
            for each in cost
        ]
        slower = itertools.count(100)  # the machine gets slower and slower, which only pairs show

        def measure(subject, _):
            return {measured: cost[subject.twin or subject.name] * (1 + 1e-4 * next(slower))}

        case = Case(*where, suite.tools.chosen(subjects), measure, [measured])
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

    def test_servers_on_several_loops_are_compared_with_asio_on_as_many_threads(self):
        cost = {"ours_epoll": 85.0, "one_loop_epoll": 83.0, "asio_threads": 100.0, "asio_shared": 110.0}
        run = data.Data(self.write(where=("many_loops", "64B_100"), cost=cost))
        text = tables.markdown(run, self.place)
        self.assertIn("| libsimplenet, two loops, epoll | 0.85 |", text)
        self.assertIn("| libsimplenet, one loop, epoll | 0.83 |", text)
        self.assertIn("| Boost.Asio, one `io_context` for two threads | 1.10 |", text)
        self.assertNotIn("busiest loop", text)  # it was not measured

    def test_balance_is_shown_as_it_was_measured(self):
        cost = {"ours_epoll": 1.02, "reuse_port_epoll": 1.19}
        run = data.Data(self.write(where=("loop_balance", "storm_8"), measured="worst_busiest", cost=cost))
        text = tables.markdown(run, self.place)
        self.assertIn("| busiest loop / mean | at once, 8 loops |", text)
        self.assertRegex(text, r"\| handed over, epoll \| 1\.0[23] \|")
        self.assertRegex(text, r"\| as the kernel chose, epoll \| 1\.(19|20|21) \|")

    def test_tls_has_tables_of_its_own(self):
        cost = {"ours_epoll": 83.0, "asio_epoll": 100.0, "asio_io_uring": 103.0}
        run = data.Data(self.write(where=("tls_echo", "64B_100"), cost=cost, complete=False))
        text = tables.tls_markdown(run, self.place)
        self.assertIn("| cost of the server | echo, 64 B, 100 |", text)
        self.assertIn("| libsimplenet, epoll | 0.83 |", text)
        self.assertIn("generate_perf_figures.py --tls` made", text)
        self.assertNotIn("two loops", text)  # was not measured
        self.assertNotIn("not completed", text)  # the other scenarios are not missed here

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

    def test_the_newest_is_the_latest_complete_one_of_the_scenario(self):
        self.assertIsNone(data.newest(self.place, "async_tcp_echo"))
        self.write("z-early", began="2026-01-02T03:04:05+00:00")
        self.write("a-late", began="2026-01-02T13:04:05+00:00")
        self.write("b-partial", began="2026-01-03T13:04:05+00:00", complete=False)
        os.makedirs(os.path.join(self.place, "empty"))
        self.assertEqual(data.newest(self.place, "async_tcp_echo"), os.path.join(self.place, "a-late.json"))
        self.assertIsNone(data.newest(self.place, "web_ab"))

    def test_tables_replace_the_text_between_the_marks(self):
        before = f"# A\n\n{tables.BEGIN}\nold\n{tables.END}\n\nend\n"
        once = tables.update(before, "new\n")
        self.assertEqual(once, f"# A\n\n{tables.BEGIN}\n\nnew\n\n{tables.END}\n\nend\n")
        self.assertEqual(tables.update(once, "new\n"), once)
        with self.assertRaises(ValueError):
            tables.update("# A\n", "new\n")

    def test_the_readme_has_a_place_for_them(self):
        def read(name):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                return file.read()

        tables.update(read("README.md"), "")
        for name, page in tables.COMPONENTS.items():
            tables.update(read(page), "", tables.component_marks(name))


if __name__ == "__main__":
    unittest.main()
