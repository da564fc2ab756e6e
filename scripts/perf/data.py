"""What a run of the suite wrote, for figures and tables."""

import csv
import json
import os

from . import paired

BASE = "asio_epoll"


class Data:
    """Paired figures come from runs.csv, so that programs that are not ours have them too."""

    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "summary.json")) as file:
            summary = json.load(file)
        self.meta = summary["meta"]
        self.settings = summary["settings"]
        self.goals = summary["goals"]
        self.noise = {}
        for each in summary["noise"]:
            key = each["scenario"], each["case"], each["measure"]
            self.noise[key] = max(self.noise.get(key, 0.0), each["noise"])
        # {(scenario, case, measure): {subject: value}}, whoever did not fail
        self.medians = {}
        for each in summary["medians"]:
            key = each["scenario"], each["case"], each["measure"]
            self.medians.setdefault(key, {})[each["subject"]] = each["value"]
        self.verdicts = {
            (each["scenario"], each["case"], each["measure"], each["ours"], each["other"]): each["verdict"]
            for each in summary["pairs"]
        }
        self.rounds = {}
        with open(os.path.join(directory, "runs.csv"), newline="") as file:
            for row in csv.DictReader(file):
                key = row["scenario"], row["case"], row["measure"]
                values = self.rounds.setdefault(key, {}).setdefault(row["subject"], {})
                values[int(row["round"])] = float(row["value"])

    def cost(self, key, subject, base=BASE):
        """(median, low, high) of the ratio of `subject` to `base` within a round; None without both."""
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

    def unclear(self, key, subject, base=BASE):
        """Whether nothing may be said about a program against `base`."""
        known = self.verdicts.get((*key, subject, base))
        if known is None and subject != base:
            # Two programs that are not ours: the suite compares only ours, so by the worse control.
            ratios = paired.paired_ratios(self.rounds[key].get(base, {}), self.rounds[key].get(subject, {}))
            known = paired.verdict(ratios, self.noise.get(key))
        return known in ("tie", "unknown")


def newest(parent):
    """The directory of the latest complete run below `parent`; None when there is none."""
    found = []
    for name in sorted(os.listdir(parent)) if os.path.isdir(parent) else []:
        try:
            with open(os.path.join(parent, name, "summary.json")) as file:
                meta = json.load(file)["meta"]
        except (OSError, ValueError, KeyError):
            continue
        if meta.get("complete"):
            found.append((meta["began"], name))
    return os.path.join(parent, max(found)[1]) if found else None
