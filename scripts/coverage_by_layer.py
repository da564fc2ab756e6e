#!/usr/bin/env python3
"""Prints coverage by layer, from gcovr's --json-summary; scripts/check coverage calls it."""

import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True

from lint.layers import read_table  # noqa: E402  pylint: disable=wrong-import-position

FEW = 95  # per cent of lines; a source with less is listed
KINDS = ("line", "branch")


class Counts:
    def __init__(self):
        self.covered = dict.fromkeys(KINDS, 0)
        self.total = dict.fromkeys(KINDS, 0)

    def add(self, file):
        for kind in KINDS:
            self.covered[kind] += file[f"{kind}_covered"]
            self.total[kind] += file[f"{kind}_total"]

    def cell(self, kind):
        covered, total = self.covered[kind], self.total[kind]
        return f"{100 * covered / total:.1f} % ({covered} of {total})" if total else ""


def layer_of(path, layers):
    """The layer of src/LAYER/... or include/simplenet/LAYER/..., or None."""
    parts = path.split("/")
    name = parts[1] if parts[0] == "src" else parts[2] if parts[:2] == ["include", "simplenet"] else None
    return name if name in layers else None


def table(files, layers):
    """The lines of a table: a row for each layer that has lines, and one for all."""
    counts = {}
    for file in files:
        path = file["filename"]
        layer = layer_of(path, layers)
        for row in (layer, "all") if layer else ():
            side = "src" if path.startswith("src/") else "include"
            counts.setdefault((row, side), Counts()).add(file)
    yield "| layer | lines of src | branches | lines of include | branches |"
    yield "|---|---|---|---|---|"
    for layer in [*layers, "all"]:
        cells = [counts.get((layer, side), Counts()).cell(kind) for side in ("src", "include") for kind in KINDS]
        if any(cells):
            yield f"| {layer} | {' | '.join(cells)} |"


def few(files):
    """The sources with less than FEW per cent of their lines."""
    for file in sorted(files, key=lambda file: file["filename"]):
        covered, total = file["line_covered"], file["line_total"]
        if file["filename"].startswith("src/") and 100 * covered < FEW * total:
            yield f"{file['filename']}: {covered} of {total} lines"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("summary", type=pathlib.Path, help="the file of gcovr --json-summary")
    files = json.loads(parser.parse_args().summary.read_text())["files"]
    layers = read_table(pathlib.Path(__file__).resolve().parent.parent).layers
    print(*table(files, layers), "", sep="\n")
    print(f"Below {FEW} % of their lines:", *(list(few(files)) or ["none"]), sep="\n")


if __name__ == "__main__":
    main()
