"""The suite's machine-readable lines: a word, then name=value pairs quoted as in a shell."""

import shlex

KINDS = (
    "PERF",
    "PERF_META",
    "PERF_META_ASYNC",
    "PERF_RUN",
    "PERF_MEDIAN",
    "PERF_PAIRED_MEDIAN",
    "PERF_NOISE",
    "PERF_GOAL",
    "PERF_SKIP",
)


def show(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    return shlex.quote(str(value)) if str(value) else "''"


def format_line(kind, **fields):
    if kind not in KINDS:
        raise ValueError(f"no such kind of line: {kind}")
    return " ".join([kind] + [f"{name}={show(value)}" for name, value in fields.items()])


def parse_line(text):
    """(kind, fields), or None for a line that only people read."""
    kind = text.split(" ", 1)[0].strip()
    if kind not in KINDS:
        return None
    return kind, parse_pairs(text[len(kind) :])


def parse_pairs(text):
    """name=value pairs; values stay text."""
    fields = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ValueError(f"not name=value: {word}")
        fields[name] = value
    return fields


def numbers(text):
    """The name=value pairs of a line printed by a benchmark program, as numbers."""
    return {name: float(value) for name, value in parse_pairs(text).items()}
