"""Computes medians, paired medians, noise and verdicts from runs."""

import collections

from . import goals, paired
from .scenarios.cases import MORE_IS_BETTER, UNITS

# Counted measures vary less from run to run than a few rounds can show, but they do vary: these are differences
# seen between a program and itself. The number of connections ready in a turn is not fixed, nor is the growth
# of malloc(3)'s pools. `adds` is the difference of two larger counts.
FLOORS = {"instructions": 0.005, "system_calls": 0.02, "adds": 0.03, "bytes_per_connection": 0.01}


class Runs:
    """Every figure of every run: (scenario, case, measure) -> subject -> round -> value."""

    def __init__(self):
        self.values = collections.defaultdict(lambda: collections.defaultdict(dict))

    def add(self, case, subject, which, figures):
        for measure, value in figures.items():
            self.values[case.scenario, case.name, measure][subject][which] = value


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
    """(pairs, noises): each of ours compared with each other one, and the controls of each measure.

    The noise of a pair is that of its backend's control, because the two backends differ.
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


def judge_goals(results):
    return [goals.judge(goal, results["medians"], results["pairs"]) for goal in goals.GOALS]
