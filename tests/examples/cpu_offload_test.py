"""cpu_offload, compared with the same hash in Python."""

import os
import tempfile

import support


def fnv1a(content):
    value = 0xcbf29ce484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


class cpu_offload_test(support.TestCase):
    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self._place = place.name

    def _file(self, name, content):
        path = os.path.join(self._place, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_hashes_each_file_in_order(self):
        contents = [bytes(range(256)) * size for size in (0, 1, 200, 3, 50)] * 4
        paths = [self._file(f"file {at}", content) for at, content in enumerate(contents)]
        ended = support.run(["cpu_offload", *paths])
        expected = "".join(f"{fnv1a(content):016x}  {path}\n" for content, path in zip(contents, paths))
        self.assertEqual((ended.returncode, ended.stdout), (0, expected))

    def test_reports_files_that_cannot_be_read(self):
        good = self._file("good", b"bytes")
        missing = os.path.join(self._place, "missing")
        ended = support.run(["cpu_offload", missing, good])
        self.assertEqual((ended.returncode, ended.stdout), (1, f"{fnv1a(b'bytes'):016x}  {good}\n"))
        self.assertEqual(ended.stderr, f"{missing}: No such file or directory\n")

    def test_prints_its_usage(self):
        ended = support.run(["cpu_offload"])
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertRegex(ended.stderr, r"\A.+\nUsage: cpu_offload FILE\.\.\.\n\Z")

    def test_a_full_disk_is_a_failure(self):
        ended = support.run_on_a_full_disk(["cpu_offload", self._file("one", b"")])
        self.assertEqual((ended.returncode, ended.stderr),
                         (1, "cannot write the output: No space left on device\n"))


if __name__ == "__main__":
    support.main()
