"""The data of a saved run, for figures and tables."""

import json
import os

from . import paired
from .scenarios.cases import MORE_IS_BETTER

BASE = "asio_epoll"


class Data:
    """A file of saved.py; derived figures are computed from the rounds."""

    def __init__(self, file):
        self.file = file
        with open(file) as opened:
            run = json.load(opened)
        self.meta = run["meta"]
        self.settings = run["settings"]
        self.goals = run["goals"]
        self.noise = {}  # {(scenario, case, measure): noise of the worse control}
        self.noise_of = {}  # {((scenario, case, measure), subject): noise of its backend's control}
        self.rounds = {}  # {(scenario, case, measure): {subject: {round: value}}}, all that did not fail
        self.medians = {}
        for case in run["cases"]:
            keys = [(case["scenario"], case["case"], measure) for measure in case["measures"]]
            for subject, row in case["noise"].items():
                for key, noise in zip(keys, row):
                    self.noise_of[key, subject] = noise
                    if noise is not None:
                        self.noise[key] = max(self.noise.get(key, 0.0), noise)
            for subject, row in case["figures"].items():
                for key, figure in zip(keys, row):
                    if figure is None:
                        continue
                    rounds = figure if isinstance(figure, list) else [figure]
                    self.rounds.setdefault(key, {})[subject] = dict(enumerate(rounds))
                    self.medians.setdefault(key, {})[subject] = paired.median(rounds)

    def cost(self, key, subject, base=BASE):
        """(median, low, high) of the ratio of `subject` to `base` within a round; None unless both ran."""
        if not {subject, base} <= self.medians.get(key, {}).keys():
            return None
        ratios = paired.paired_ratios(self.rounds[key][base], self.rounds[key][subject])
        return (paired.median(ratios), *paired.interval(ratios)) if ratios else None

    def costs(self, key, base=BASE):
        """{subject: cost} of all that ran, without the controls."""
        found = {}
        for subject in self.medians.get(key, {}):
            value = None if subject.startswith("control") else self.cost(key, subject, base)
            if value:
                found[subject] = value
        return found

    def absolutes(self, key):
        """{subject: (median, smallest, largest)}, without the controls."""
        found = {}
        for subject, value in self.medians.get(key, {}).items():
            if not subject.startswith("control"):
                rounds = self.rounds[key][subject].values()
                found[subject] = value, min(rounds), max(rounds)
        return found

    def verdict(self, key, subject, other):
        """The suite's verdict; for two programs that are not ours, by the worse control."""
        rounds = self.rounds.get(key, {})
        ratios = paired.paired_ratios(rounds.get(subject, {}), rounds.get(other, {}), key[2] in MORE_IS_BETTER)
        return paired.verdict(ratios, self.noise_of.get((key, subject), self.noise.get(key)))

    def unclear(self, key, subject, base=BASE):
        """Whether the data are insufficient to compare a program with `base`."""
        return subject != base and self.verdict(key, subject, base) in ("tie", "unknown")


def newest(parent, scenario):
    """The file of the latest run of `scenario` in `parent` that was not interrupted; None when there is none."""
    found = []
    for name in sorted(os.listdir(parent)) if os.path.isdir(parent) else []:
        try:
            with open(os.path.join(parent, name)) as file:
                run = json.load(file)
            meta = run["meta"]
            has_it = any(case["scenario"] == scenario for case in run["cases"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if meta.get("complete") and has_it:
            found.append((meta["began"], name))
    return os.path.join(parent, max(found)[1]) if found else None
