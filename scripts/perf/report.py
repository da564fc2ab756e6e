"""From runs to medians, paired medians, noise and verdicts; and to CSV and JSON."""

import collections
import csv
import json
import os

from . import goals, lines, paired
from .scenarios import MORE_IS_BETTER, UNITS
from .subjects import CONTROL


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
                values = by_subject[subject].values()
                found.append(
                    {
                        "scenario": scenario,
                        "case": name,
                        "measure": measure,
                        "subject": subject,
                        "value": paired.median(values),
                        "unit": UNITS.get(measure, ""),
                        "n": len(values),
                    }
                )
    return found


def comparisons(case, runs, ours, others):
    """(pairs, noises): each of ours against each other one, and the control of each measure."""
    pairs, noises = [], []
    for measure in case.main:
        by_subject = runs.values.get((case.scenario, case.name, measure))
        if not by_subject:
            continue
        more = measure in MORE_IS_BETTER
        noise = 0.0 if case.repeatable else None
        again = [each for each in ours if each in by_subject][:1]
        if again and CONTROL in by_subject:
            ratios = paired.paired_ratios(by_subject[again[0]], by_subject[CONTROL], more)
            noise = paired.noise_of(ratios)
            if noise is not None:
                noises.append(
                    {
                        "scenario": case.scenario,
                        "case": case.name,
                        "measure": measure,
                        "subject": again[0],
                        "ratio": paired.median(ratios),
                        "noise": noise,
                        "n": len(ratios),
                    }
                )
        for our in ours:
            for other in others:
                if our not in by_subject or other not in by_subject:
                    continue
                ratios = paired.paired_ratios(by_subject[our], by_subject[other], more)
                if not ratios:
                    continue
                ratio = paired.median(ratios)
                pairs.append(
                    {
                        "scenario": case.scenario,
                        "case": case.name,
                        "measure": measure,
                        "ours": our,
                        "other": other,
                        "ratio": ratio,
                        "low": min(ratios),
                        "high": max(ratios),
                        "n": len(ratios),
                        "noise": noise,
                        "verdict": paired.verdict(ratio, noise),
                    }
                )
    return pairs, noises


def write(directory, meta, settings, runs, results, text):
    """runs.csv, medians.csv, pairs.csv, summary.json and output.txt."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "runs.csv"), "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["scenario", "case", "subject", "round", "measure", "value"])
        out.writerows(row[:5] + [lines.show(row[5])] for row in runs.rows)
    for name in ("medians", "pairs"):
        if not results[name]:
            continue
        with open(os.path.join(directory, f"{name}.csv"), "w", newline="") as file:
            out = csv.DictWriter(file, list(results[name][0]), lineterminator="\n")
            out.writeheader()
            out.writerows(
                {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
                for row in results[name]
            )
    with open(os.path.join(directory, "summary.json"), "w") as file:
        json.dump({"meta": meta, "settings": settings.as_dict(), **results}, file, indent=1)
        file.write("\n")
    with open(os.path.join(directory, "output.txt"), "w") as file:
        file.write("\n".join(text) + "\n")


def judge_goals(results):
    return [goals.judge(goal, results["medians"], results["pairs"]) for goal in goals.GOALS]
