"""watch_files, while Python and the shell change files."""

import os
import signal
import subprocess
import tempfile

import support


class watch_files_test(support.TestCase):
    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def watch(self, *options):
        watcher = subprocess.Popen(
            support.with_backend([support.program("watch_files"), self.place, *options]),
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(watcher.stdout.close)
        self.assertEqual(watcher.stdout.readline(), f"watching {self.place}\n")
        return watcher

    def test_it_reports_changes_as_they_happen(self):
        watcher = self.watch()
        path = os.path.join(self.place, "new file")
        for _ in range(3):
            with open(path, "w") as file:
                self.assertEqual(watcher.stdout.readline(), "appeared new file\n")
                file.write("content")
            self.assertEqual(watcher.stdout.readline(), "changed new file\n")
            os.remove(path)
            self.assertEqual(watcher.stdout.readline(), "vanished new file\n")
        watcher.send_signal(signal.SIGTERM)
        self.assertIn(watcher.wait(support.WAIT), (0, -signal.SIGTERM))

    def test_a_thousand_files_at_once_are_all_reported(self):
        watcher = self.watch("--events", "1000")
        subprocess.run(["bash", "-c", "mkdir {1..1000}"], cwd=self.place,
                       check=True, timeout=support.LIMIT)
        lines = watcher.stdout.read().splitlines()
        self.assertEqual(sorted(lines), sorted(f"appeared {i}" for i in range(1, 1001)))
        self.assertEqual(watcher.wait(support.WAIT), 0)

    def test_it_ends_with_its_directory(self):
        inner = os.path.join(self.place, "inner")
        os.mkdir(inner)
        watcher = subprocess.Popen(
            support.with_backend([support.program("watch_files"), inner]),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watcher.kill)  # no process stays behind
        self.assertEqual(watcher.stdout.readline(), f"watching {inner}\n")
        os.rmdir(inner)
        out, said = watcher.communicate(timeout=support.WAIT)
        self.assertEqual((watcher.returncode, out, said),
                         (1, "", f"{inner}: No such file or directory\n"))

    def test_a_missing_directory_is_reported(self):
        self.assert_fails(support.run(["watch_files", self.place + "/none"]),
                          "No such file or directory")


if __name__ == "__main__":
    support.main()
