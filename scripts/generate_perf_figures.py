#!/usr/bin/env python3
"""Draws the figures of the README from what scripts/run_perf_suite.sh wrote.

    python3 scripts/generate_perf_figures.py [--data docs/development/perf-data/DATE] [--out docs/figures]

Without --data it takes the latest date. Needs matplotlib (Debian, Ubuntu: python3-matplotlib). The same
data give the same bytes.
"""

import argparse
import csv
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "docs", "development", "perf-data")

OURS = {
    "ours_epoll_read_some": "libsimplenet, epoll, read_some",
    "ours_epoll_receive": "libsimplenet, epoll, receive",
    "ours_io_uring_read_some": "libsimplenet, io_uring, read_some",
    "ours_io_uring_receive": "libsimplenet, io_uring, receive",
    "ours_epoll": "libsimplenet, epoll",
    "ours_io_uring": "libsimplenet, io_uring",
}
OTHERS = {
    "asio": "Boost.Asio",
    "asio_epoll": "Boost.Asio, epoll",
    "asio_io_uring": "Boost.Asio, io_uring",
    "tokio": "tokio",
    "libuv": "libuv",
    "libevent": "libevent",
    "asyncio": "Python asyncio",
    "bare_epoll": "bare epoll",
    "bare_io_uring": "bare io_uring",
}
NAMES = {**OURS, **OTHERS}
COLOURS = {
    **dict(zip(OURS, ["#0b5fa5", "#3d8fd1", "#0f7a4d", "#45b583", "#0b5fa5", "#0f7a4d"])),
    **dict(
        zip(OTHERS, ["#c1440e", "#c1440e", "#e58a5c", "#8a5ba8", "#c9a227", "#a08a55", "#999999", "#444444", "#777777"])
    ),
}


def newest():
    dates = sorted(os.listdir(DATA)) if os.path.isdir(DATA) else []
    dates = [each for each in dates if os.path.exists(os.path.join(DATA, each, "medians.csv"))]
    if not dates:
        sys.exit("no data yet: run scripts/run_perf_suite.sh")
    return os.path.join(DATA, dates[-1])


def read(directory):
    """{(scenario, case, measure): {subject: value}}, and what the figures depend on."""
    medians = {}
    with open(os.path.join(directory, "medians.csv"), newline="") as file:
        for row in csv.DictReader(file):
            key = row["scenario"], row["case"], row["measure"]
            medians.setdefault(key, {})[row["subject"]] = float(row["value"])
    with open(os.path.join(directory, "summary.json")) as file:
        return medians, json.load(file)["meta"]


def relative(medians, keys, base):
    """For each key the values as parts of that of `base`; keys without it are left out."""
    found = []
    for label, key in keys:
        values = medians.get(key, {})
        if values.get(base):
            found.append((label, {name: value / values[base] for name, value in values.items()}))
    return found


def bars(plot, title, groups, axis, file, line=None, logarithmic=False):
    """Groups of bars: [(label, {subject: value})]; draws nothing when there is nothing."""
    subjects = [name for name in NAMES if any(name in values for _, values in groups)]
    if not groups or not subjects:
        print(f"{os.path.basename(file)}: no data")
        return
    figure, axes = plot.subplots(figsize=(max(6.5, 0.16 * len(groups) * len(subjects) + 3), 4))
    width = 0.84 / len(subjects)
    for at, name in enumerate(subjects):
        places = [group + (at + 0.5) * width - 0.42 for group in range(len(groups))]
        heights = [values.get(name, float("nan")) for _, values in groups]
        axes.bar(places, heights, width * 0.92, label=NAMES[name], color=COLOURS[name])
    axes.set_xticks(range(len(groups)), [label for label, _ in groups])
    axes.set_ylabel(axis)
    axes.set_title(title, loc="left", fontsize=11)
    if line is not None:
        axes.axhline(line, color="#c1440e", linewidth=0.8, linestyle="--")
    if logarithmic:
        axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7, ncols=2, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.1))
    figure.savefig(file, bbox_inches="tight", metadata={} if file.endswith("png") else {"Date": None})
    plot.close(figure)
    print(os.path.relpath(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a directory that the suite wrote (default: the latest date)")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "figures"))
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    given = parser.parse_args()
    try:
        import matplotlib
    except ImportError:
        sys.exit("matplotlib is missing: sudo apt-get install python3-matplotlib, and /usr/bin/python3")
    matplotlib.use("agg" if given.format == "png" else "svg")
    matplotlib.rcParams["svg.hashsalt"] = "libsimplenet"
    from matplotlib import pyplot

    medians, meta = read(given.data or newest())
    os.makedirs(given.out, exist_ok=True)
    where = f"{meta['processor']}, Linux {meta['kernel']}, {meta['date']}"

    def out(name):
        return os.path.join(given.out, f"{name}.{given.format}")

    for size in (64, 1024, 16384):
        keys = [
            (f"{count} connection{'s' if count > 1 else ''}", ("async_tcp_echo", f"{size}B_{count}", "server_cpu_ns"))
            for count in (1, 8, 10, 100, 1000)
        ]
        bars(
            pyplot,
            f"Echo of {size} bytes: processor time of the server, one processor\n{where}",
            relative(medians, keys, "asio_epoll"),
            "for a round trip, Boost.Asio on epoll = 1",
            out(f"echo_{size}"),
            1.0,
        )
    keys = [(f"{count} at once", ("connection_churn", str(count), "server_cpu_ns")) for count in (16, 32, 64)]
    bars(
        pyplot,
        f"Connect, one round trip, reset: processor time of the server\n{where}",
        relative(medians, keys, "asio_epoll"),
        "Boost.Asio on epoll = 1",
        out("churn"),
        1.0,
    )
    pieces = [
        ("await", "coroutine_call"),
        ("spawn, join", "spawn_join"),
        ("yield", "yield"),
        ("when_all\nof 100", "when_all_100"),
        ("channel", "channel"),
        ("timer,\n100 000", "timer_arm_cancel_100000"),
        ("post,\n64 of them", "post_same_thread_64"),
        ("resolve", "resolve_numeric"),
    ]
    found = [(label, medians[key]) for label, name in pieces if (key := ("micro", name, "cpu_ns")) in medians]
    bars(pyplot, f"Pieces of a loop\n{where}", found, "nanoseconds", out("micro"), logarithmic=True)
    for scenario, measure, title, axis in (
        ("memory_per_connection", "bytes_per_connection", "Memory of an idle connection", "bytes"),
        ("instructions", "instructions", "Instructions in user space for a round trip", "instructions"),
        ("ab_matrix", "requests_per_s", "Echo under ab -k", "requests a second"),
    ):
        found = [(case, values) for (name, case, of), values in medians.items() if (name, of) == (scenario, measure)]
        bars(pyplot, f"{title}\n{where}", found, axis, out(scenario))


if __name__ == "__main__":
    main()
