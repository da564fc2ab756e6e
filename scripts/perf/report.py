"""From runs to medians, paired medians, noise and verdicts; and to CSV and JSON."""

import collections
import csv
import json
import os

from . import goals, lines, paired
from .scenarios import MORE_IS_BETTER, UNITS
from .settings import Wrong

# What is counted differs less from run to run than a few rounds can show, but it does differ: as much
# was seen between a program and itself. How many connections are ready in a turn is not fixed, nor is
# how the pools of malloc(3) grow. `adds` is the difference of two counts that are larger.
FLOORS = {"instructions": 0.005, "system_calls": 0.02, "adds": 0.03, "bytes_per_connection": 0.01}


class Runs:
    """Every figure of every run: (scenario, case, measure) -> subject -> round -> value."""

    def __init__(self):
        self.values = collections.defaultdict(lambda: collections.defaultdict(dict))
        self.rows = []

    def add(self, case, subject, which, figures):
        for measure, value in figures.items():
            self.values[case.scenario, case.name, measure][subject][which] = value
            self.rows.append([case.scenario, case.name, subject, which, measure, value])


def medians(case, runs, subjects):
    found = []
    for (scenario, name, measure), by_subject in list(runs.values.items()):
        if (scenario, name) != (case.scenario, case.name):
            continue
        for subject in subjects:
            if subject in by_subject:
                values = list(by_subject[subject].values())
                found.append(
                    {
                        "scenario": scenario,
                        "case": name,
                        "measure": measure,
                        "subject": subject,
                        "value": paired.median(values),
                        "unit": UNITS.get(measure, ""),
                        "n": len(values),
                        "noise": paired.noise_of_values(values, FLOORS.get(measure, 0.0)),
                    }
                )
    return found


def comparisons(case, runs, subjects):
    """(pairs, noises): each of ours against each other one, and the controls of each measure.

    The noise of a pair is that of the control of its backend: the two backends differ in it.
    """
    ours = [each for each in subjects if each.ours]
    others = [each.name for each in subjects if not each.ours and not each.twin]
    controls = [each for each in subjects if each.twin]
    pairs, noises = [], []
    for measure in case.main:
        by_subject = runs.values.get((case.scenario, case.name, measure))
        if not by_subject:
            continue
        more = measure in MORE_IS_BETTER
        floor = FLOORS.get(measure, 0.0)
        noise_of = {}  # by backend
        for control in controls:
            if control.name not in by_subject or control.twin not in by_subject:
                continue
            ratios = paired.paired_ratios(by_subject[control.twin], by_subject[control.name], more)
            noise = paired.noise_of(ratios, floor)
            if noise is None:
                continue
            noise_of[control.backend] = noise
            noises.append(
                {
                    "scenario": case.scenario,
                    "case": case.name,
                    "measure": measure,
                    "subject": control.twin,
                    "ratio": paired.median(ratios),
                    "noise": noise,
                    "n": len(ratios),
                }
            )
        for our in ours:
            for other in others:
                if our.name not in by_subject or other not in by_subject:
                    continue
                ratios = paired.paired_ratios(by_subject[our.name], by_subject[other], more)
                if not ratios:
                    continue
                noise = floor if case.repeatable else noise_of.get(our.backend)
                low, high = paired.interval(ratios)
                pairs.append(
                    {
                        "scenario": case.scenario,
                        "case": case.name,
                        "measure": measure,
                        "ours": our.name,
                        "other": other,
                        "ratio": paired.median(ratios),
                        "low": low,
                        "high": high,
                        "n": len(ratios),
                        "noise": noise,
                        "verdict": paired.verdict(ratios, noise),
                    }
                )
    return pairs, noises


def free_place(parent, name):
    """The first of name-1, name-2 and so on that nothing is called in any state."""
    taken = os.listdir(parent) if os.path.isdir(parent) else []
    number = 1
    while any(each == f"{name}-{number}" or each.startswith(f"{name}-{number}-partial") for each in taken):
        number += 1
    return os.path.join(parent, f"{name}-{number}")


def check_place(directory):
    if os.path.exists(directory) and not (os.path.isdir(directory) and not os.listdir(directory)):
        raise Wrong(f"{directory} is there already, and would be lost")


class Saved:
    """Where a run is written: beside its place until it is complete, so that no run is ever lost.

    Written after each case. Whatever ends the run, DIRECTORY-partial has all cases until then.
    """

    def __init__(self, directory):
        directory = os.path.normpath(directory)
        check_place(directory)
        self.directory = directory
        self.partial = f"{directory}-partial"
        number = 2
        while os.path.exists(self.partial):
            self.partial = f"{directory}-partial-{number}"
            number += 1
        try:
            os.makedirs(self.partial)
        except OSError as error:
            raise Wrong(f"{self.partial}: {error.strerror}") from None

    def write(self, *what):
        write(self.partial, *what)

    def finish(self):
        """Gives it its name."""
        os.rename(self.partial, self.directory)
        return self.directory


def write(directory, meta, settings, runs, results, text):
    """runs.csv, medians.csv, pairs.csv, summary.json and output.txt, each whole or as it was."""
    os.makedirs(directory, exist_ok=True)

    def put(name, fill):
        place = os.path.join(directory, name)
        with open(place + ".new", "w", newline="") as file:
            fill(file)
        os.replace(place + ".new", place)

    def put_runs(file):
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["scenario", "case", "subject", "round", "measure", "value"])
        out.writerows(row[:5] + [lines.show(row[5])] for row in runs.rows)

    put("runs.csv", put_runs)
    for name in ("medians", "pairs"):
        if not results[name]:
            continue

        def put_records(file, name=name):
            out = csv.DictWriter(file, list(results[name][0]), lineterminator="\n")
            out.writeheader()
            out.writerows(
                {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
                for row in results[name]
            )

        put(f"{name}.csv", put_records)
    summary = {"meta": meta, "settings": settings.as_dict(), **results}
    put("summary.json", lambda file: file.write(json.dumps(summary, indent=1) + "\n"))
    put("output.txt", lambda file: file.write("\n".join(text) + "\n"))


def judge_goals(results):
    return [goals.judge(goal, results["medians"], results["pairs"]) for goal in goals.GOALS]
