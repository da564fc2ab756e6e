"""The arithmetic of paired measurements: order of runs, medians, ratios, noise and verdicts."""

import math
import statistics

# 1.96 standard errors of the median of n normal values is 1.96 * 1.2533 * sigma / sqrt(n), and sigma
# is 1.4826 times the median distance from the centre. Robust: one disturbed run changes little.
NOISE_FACTOR = 1.96 * 1.2533 * 1.4826


def median(values):
    """The middle value; of an even number the mean of the two in the middle."""
    values = list(values)
    if not values:
        raise ValueError("a median of nothing")
    return statistics.median(values)


def round_order(subjects, which):
    """Forwards in even rounds, backwards in odd ones.

    In an even number of rounds each subject comes before each other one exactly half of the time,
    so what drifts (heat, a neighbour on the machine) hits both alike.
    """
    return list(subjects) if which % 2 == 0 else list(reversed(subjects))


def check_repeats(repeats):
    if repeats < 2 or repeats % 2 != 0:
        raise ValueError(f"repeats must be even and at least 2, not {repeats}")
    return repeats


def speed_ratio(ours, other, more_is_better=False):
    """Above 1: we are faster. None where there is nothing to divide."""
    if ours is None or other is None or ours <= 0 or other <= 0:
        return None
    return ours / other if more_is_better else other / ours


def paired_ratios(ours, other, more_is_better=False):
    """Ratios of the rounds that both have; `ours` and `other` map a round to its value."""
    found = []
    for each in sorted(set(ours) & set(other)):
        ratio = speed_ratio(ours[each], other[each], more_is_better)
        if ratio is not None:
            found.append(ratio)
    return found


def noise_of(control_ratios, floor=0.0):
    """How far from 1 a paired median may lie by chance, as a part of 1 (0.02 is 2 %).

    From the ratios of a program to itself: the larger of where their median went, and of how far a
    median of so many such ratios goes in 95 of 100 runs; at least `floor`. None when there are no
    ratios.
    """
    logs = [math.log(ratio) for ratio in control_ratios if ratio > 0]
    if not logs:
        return None
    went = abs(median(logs))
    return max(math.exp(max(went, may_go(logs, 0.0))) - 1, floor)


def may_go(logs, centre):
    return NOISE_FACTOR / math.sqrt(len(logs)) * median(abs(value - centre) for value in logs)


def noise_of_values(values, floor=0.0):
    """The same for a median of values by themselves, which drift hits as well."""
    values = list(values)
    if min(values) <= 0:
        return floor
    logs = [math.log(value) for value in values]
    return max(math.exp(may_go(logs, median(logs))) - 1, floor)


def interval(ratios):
    """(low, high): where the median of such ratios truly lies, by their signs alone.

    Between the smallest and the largest of six it lies in 97 of 100 runs, whatever their
    distribution; of ten or more the outer ones may be left out. Four are not enough for more than
    88 of 100.
    """
    ordered = sorted(ratios)
    count = len(ordered)
    leave_out = 0
    chance = 2 * 0.5**count  # that the true median is outside of all
    while True:
        chance += 2 * math.comb(count, leave_out + 1) * 0.5**count
        if chance > 0.05 or 2 * (leave_out + 1) >= count:
            break
        leave_out += 1
    return ordered[leave_out], ordered[count - 1 - leave_out]


def verdict(ratios, noise):
    """`faster` or `slower`; `tie` inside the noise, or where the rounds do not agree.

    `unknown` when no noise was measured. The noise of the control knows nothing of how unsteady the
    other program is; that its rounds agree does.
    """
    if not ratios:
        return "none"
    if noise is None:
        return "unknown"
    ratio = median(ratios)
    low, high = interval(ratios)
    if abs(math.log(ratio)) <= math.log1p(noise) + 1e-12 or low <= 1 <= high:
        return "tie"
    return "faster" if ratio > 1 else "slower"
