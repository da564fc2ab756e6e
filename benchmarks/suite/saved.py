"""The one file that a run of the suite leaves: JSON, a line for each program of a case.

    "cases": [
     {
      "scenario": "async_tcp_echo", "case": "64B_1", "busy": 0,
      "measures": ["server_cpu_ns", "p50_ns"],
      "noise":   {"ours_epoll_receive": [0.046, null], ...},
      "figures": {"ours_epoll_receive": [[2567.25, 2598.1, ...], 4992], ...}
     },

A measure that programs are compared by has the figure of every round: medians, paired ratios and verdicts are
computed from them (data.py). Any other measure has its median over the rounds. `noise` is null where nothing
was compared.
"""

import json
import os

from . import paired
from .settings import Wrong


def rounded(value):
    """Six digits, as in the lines; more would be noise."""
    if not isinstance(value, float):
        return value
    value = float(f"{value:.6g}")
    return int(value) if value.is_integer() else value


def compact(meta, settings, runs, results):
    """The contents of the file, from the results of report.py."""
    compared = {key_of(each) for each in results["pairs"] + results["noise"]}
    cases = {}
    for each in results["medians"]:
        key = key_of(each)
        case = cases.setdefault(key[:2], {"busy": rounded(each["busy"]), "measures": {}, "noise": {}, "figures": {}})
        rounds = list(runs.values[key][each["subject"]].values())
        figure = [rounded(value) for value in rounds] if key in compared else rounded(paired.median(rounds))
        case["measures"][key[2]] = True  # a set that keeps its order
        case["figures"].setdefault(each["subject"], {})[key[2]] = figure
    for each in results["noise"] + results["pairs"]:
        name = each["ours"] if "ours" in each else each["subject"]
        noise = cases[key_of(each)[:2]]["noise"].setdefault(name, {})
        noise[each["measure"]] = rounded(each["noise"])

    def row(case, values):
        return [values.get(measure) for measure in case["measures"]]

    return {
        "meta": meta,
        "settings": settings.as_dict(),
        "cases": [
            {
                "scenario": scenario,
                "case": name,
                "busy": case["busy"],
                "measures": list(case["measures"]),
                "noise": {subject: row(case, values) for subject, values in case["noise"].items()},
                "figures": {subject: row(case, values) for subject, values in case["figures"].items()},
            }
            for (scenario, name), case in cases.items()
        ],
        "skips": results["skips"],
        "goals": [{name: rounded(value) for name, value in each.items()} for each in results["goals"]],
    }


def key_of(record):
    return record["scenario"], record["case"], record["measure"]


def to_text(value, depth=0):
    """JSON with one line for each row of a table."""
    pairs = isinstance(value, dict)
    inner = list(value.values()) if pairs else value
    opened = pairs and (depth < 2 or any(isinstance(each, (dict, list)) for each in inner))
    if not opened and not (isinstance(value, list) and any(isinstance(each, dict) for each in value)):
        return json.dumps(value, separators=(", " if pairs else ",", ": "))
    parts = [to_text(each, depth + 1) for each in inner]
    if pairs:
        parts = [f"{json.dumps(name)}: {part}" for name, part in zip(value, parts)]
    begin, end = "{}" if pairs else "[]"
    blanks = " " * depth
    return begin + ",".join(f"\n{blanks} {part}" for part in parts) + f"\n{blanks}{end}"


# --- places --------------------------------------------------------------------------------------


def free_name(name, *parents):
    """The first of name-1, name-2 and so on that is unused in all parents, in any state."""
    taken = [each for parent in parents if os.path.isdir(parent) for each in os.listdir(parent)]
    number = 1
    while any(each.startswith((f"{name}-{number}.", f"{name}-{number}-partial")) for each in taken):
        number += 1
    return f"{name}-{number}"


def check_place(file):
    if os.path.exists(file):
        raise Wrong(f"{file} exists and would be overwritten")


class Saved:
    """The file of a run: written beside its final name until the run is complete, so that no run is lost.

    It is written after each case. Whatever ends the run, FILE-partial has all cases until then.
    """

    def __init__(self, file):
        check_place(file)
        self.file = file
        stem, ending = os.path.splitext(file)
        self.partial = f"{stem}-partial{ending}"
        number = 2
        while os.path.exists(self.partial):
            self.partial = f"{stem}-partial-{number}{ending}"
            number += 1
        try:
            os.makedirs(os.path.dirname(os.path.abspath(file)), exist_ok=True)
            with open(self.partial, "x"):
                pass
        except OSError as error:
            raise Wrong(f"{self.partial}: {error.strerror}") from None

    def write(self, *what):
        """Writes the file atomically."""
        with open(self.partial + ".new", "w") as file:
            file.write(to_text(compact(*what)) + "\n")
        os.replace(self.partial + ".new", self.partial)

    def finish(self):
        """Gives the file its final name."""
        check_place(self.file)
        os.rename(self.partial, self.file)
        return self.file
