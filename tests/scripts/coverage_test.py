"""The table of scripts/coverage_by_layer.py."""

import unittest

import coverage_by_layer as coverage

LAYERS = ["core", "io", "net"]


def file(name, lines, branches=(0, 0)):
    return {
        "filename": name,
        "line_covered": lines[0],
        "line_total": lines[1],
        "branch_covered": branches[0],
        "branch_total": branches[1],
    }


class CoverageByLayerTest(unittest.TestCase):
    def test_files_add_up_to_their_layer_and_layers_to_all(self):
        files = [
            file("src/io/one.cpp", (3, 4), (1, 2)),
            file("src/io/two.cpp", (6, 6)),
            file("include/simplenet/core/buffer.hpp", (1, 2)),
        ]
        self.assertEqual(
            list(coverage.table(files, LAYERS))[2:],
            [
                "| core |  |  | 50.0 % (1 of 2) |  |",
                "| io | 90.0 % (9 of 10) | 50.0 % (1 of 2) |  |  |",
                "| all | 90.0 % (9 of 10) | 50.0 % (1 of 2) | 50.0 % (1 of 2) |  |",
            ],
        )

    def test_what_is_in_no_layer_does_not_count(self):
        self.assertEqual(list(coverage.table([file("include/simplenet/fwd.hpp", (1, 2))], LAYERS))[2:], [])

    def test_sources_with_few_lines_covered_are_listed(self):
        files = [
            file("src/net/b.cpp", (94, 100)),
            file("src/net/a.cpp", (95, 100)),
            file("include/simplenet/net/c.hpp", (0, 9)),
        ]
        self.assertEqual(list(coverage.few(files)), ["src/net/b.cpp: 94 of 100 lines"])


if __name__ == "__main__":
    unittest.main()
