"""The arithmetic of paired measurements: order of runs, medians, ratios, noise and verdicts."""

import math
import statistics

# 1.96 standard errors of the median of n normal values are 1.96 * 1.2533 * sigma / sqrt(n), and sigma is
# is 1.4826 times the median distance from the centre. Robust: one disturbed run changes little.
NOISE_FACTOR = 1.96 * 1.2533 * 1.4826


def median(values):
    """The middle value, or the mean of the two middle values."""
    values = list(values)
    if not values:
        raise ValueError("a median of nothing")
    return statistics.median(values)


def round_order(subjects, which):
    """Forwards in even rounds, backwards in odd ones.

    In an even number of rounds each subject precedes each other one exactly half of the time, so drift (heat, a
    neighbour on the machine) affects both alike.
    """
    return list(subjects) if which % 2 == 0 else list(reversed(subjects))


def check_repeats(repeats):
    if repeats < 2 or repeats % 2 != 0:
        raise ValueError(f"repeats must be even and at least 2, not {repeats}")
    return repeats


def speed_ratio(ours, other, more_is_better=False):
    """Above 1: we are faster. None if there is nothing to divide."""
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
    """How far from 1 a paired median may be by chance, as a fraction (0.02 is 2 %).

    Computed from the ratios of a program to itself: the larger of the distance of their median from 1, and the
    distance that a median of that many ratios reaches in 95 of 100 runs; at least `floor`. None if there are no
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
    """The same for a median of plain values, which drift affects too."""
    values = list(values)
    if min(values) <= 0:
        return floor
    logs = [math.log(value) for value in values]
    return max(math.exp(may_go(logs, median(logs))) - 1, floor)


def interval(ratios):
    """(low, high): bounds of the true median of such ratios, from their signs alone.

    It lies between the smallest and the largest of six in 97 of 100 runs, whatever their distribution; with ten
    or more the outermost may be left out. Four give only 88 of 100.
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
    """`faster` or `slower`; `tie` inside the noise, or if the rounds do not agree.

    `unknown` if no noise was measured. The noise of the control does not show how unsteady the other program
    is; agreement of its rounds does.
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
