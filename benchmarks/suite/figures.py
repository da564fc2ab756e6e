"""Draws the figures of the README, and prints its tables, from what scripts/run_perf_suite.sh wrote.

    python3 scripts/generate_perf_figures.py                      # docs/figures/*.svg, and the tables
    python3 scripts/generate_perf_figures.py --all --out DIR      # figures of everything that was measured
    python3 scripts/generate_perf_figures.py --update README.md   # the tables into their place there, too
    python3 scripts/generate_perf_figures.py --tables             # tables only: needs no matplotlib
    python3 scripts/generate_perf_figures.py --tls                # the tables of TLS only; also --http, --web, --web-ab
    python3 scripts/generate_perf_figures.py --counts             # performance-counts.md: strace, callgrind

Takes the latest run in docs/development/perf-data that has the figures; --data FILE takes that one. Needs matplotlib
(Debian, Ubuntu: python3-matplotlib, for /usr/bin/python3). The same data give the same bytes.
"""

import argparse
import os
import sys

from . import tables
from .data import BASE, Data, newest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "docs", "development", "perf-data")

OURS = {
    "ours_epoll_read_some": "libsimplenet, epoll, read_some",
    "ours_epoll_receive": "libsimplenet, epoll, receive",
    "ours_io_uring_read_some": "libsimplenet, io_uring, read_some",
    "ours_io_uring_receive": "libsimplenet, io_uring, receive",
    "ours_epoll": "libsimplenet, epoll",
    "ours_io_uring": "libsimplenet, io_uring",
    "ours_epoll_read_some_busy_poll": "libsimplenet, epoll, read_some, busy polling",
    "ours_io_uring_read_some_busy_poll": "libsimplenet, io_uring, read_some, busy polling",
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
    "nginx": "nginx",
    "nginx_debian": "nginx, as Debian configures it",
    "apache": "Apache, event MPM",
}
NAMES = {**OURS, **OTHERS}
COLOURS = {
    **dict(zip(OURS, ["#0b5fa5", "#3d8fd1", "#0f7a4d", "#45b583", "#0b5fa5", "#0f7a4d", "#7fb8e6", "#8fd4b5"])),
    **dict(
        zip(OTHERS, ["#c1440e", "#c1440e", "#e58a5c", "#8a5ba8", "#c9a227", "#a08a55", "#999999", "#444444", "#777777",
                     "#c1440e", "#e58a5c", "#8a5ba8"])
    ),
}


PALE = 0.35


def bars(plot, title, groups, axis, file, line=None, logarithmic=False):
    """Groups of bars: [(label, {subject: (value, low, high, pale)})]; draws nothing when there is nothing."""
    subjects = [name for name in NAMES if any(name in values for _, values in groups)]
    if not groups or not subjects:
        print(f"{os.path.basename(file)}: no data", file=sys.stderr)
        return
    figure, axes = plot.subplots(figsize=(max(6.5, 0.16 * len(groups) * len(subjects) + 3), 4))
    width = 0.84 / len(subjects)
    for at, name in enumerate(subjects):
        for group, (_, values) in enumerate(groups):
            if name not in values:
                continue
            value, low, high, pale = values[name]
            axes.bar(
                group + (at + 0.5) * width - 0.42,
                value,
                width * 0.92,
                color=COLOURS[name],
                alpha=PALE if pale else 1.0,
                yerr=[[max(value - low, 0.0)], [max(high - value, 0.0)]],
                error_kw={"elinewidth": 0.7, "ecolor": "#333333"},
            )
    axes.set_xticks(range(len(groups)), [label for label, _ in groups])
    axes.set_ylabel(axis)
    axes.set_title(title, loc="left", fontsize=11)
    if line is not None:
        axes.axhline(line, color="#c1440e", linewidth=0.8, linestyle="--")
    if logarithmic:
        axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    # Not taken from the bars: the first bar of a program may be a pale one.
    full = [plot.Rectangle((0, 0), 1, 1, color=COLOURS[name], label=NAMES[name]) for name in subjects]
    axes.legend(
        handles=full, fontsize=7, ncols=2, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.1)
    )
    figure.savefig(file, bbox_inches="tight", metadata={} if file.endswith("png") else {"Date": None})
    plot.close(figure)
    print(os.path.relpath(file), file=sys.stderr)


def relative(data, keys, base=BASE):
    """Paired costs; a cost of ours that is a tie is drawn pale."""
    found = []
    for label, key in keys:
        costs = data.costs(key, base)
        if costs:
            found.append((label, {name: (*three, data.unclear(key, name, base)) for name, three in costs.items()}))
    return found


def absolute(data, keys):
    return [
        (label, {name: (*three, False) for name, three in data.absolutes(key).items()})
        for label, key in keys
        if key in data.medians
    ]


def draw(data, out, format_name, names=None):
    """The figures called `names`, or all."""
    import matplotlib  # pylint: disable=import-outside-toplevel

    matplotlib.use("agg" if format_name == "png" else "svg")
    matplotlib.rcParams["svg.hashsalt"] = "libsimplenet"
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    os.makedirs(out, exist_ok=True)
    meta = data.meta
    where = f"{meta['processor']}, Linux {meta['kernel']}, {meta['date']}, {meta['commit']}"
    paired = f"{where}\nmedians within a round, with bounds; pale: a tie"

    def chart(name, title, groups, axis, **how):
        if names is None or name in names:
            bars(pyplot, title, groups, axis, os.path.join(out, f"{name}.{format_name}"), **how)

    for size in (64, 1024, 16384):
        keys = [
            (f"{count} connection{'s' if count > 1 else ''}", ("async_tcp_echo", f"{size}B_{count}", "server_cpu_ns"))
            for count in (1, 8, 10, 100, 1000)
        ]
        title = f"Echo of {size} bytes: processor time of the server, one processor\n{paired}"
        axis = "per round trip, Boost.Asio on epoll = 1"
        chart(f"echo_{size}", title, relative(data, keys), axis, line=1.0)
    keys = [(f"{count} at once", ("connection_churn", str(count), "server_cpu_ns")) for count in (16, 32, 64)]
    title = f"Connect, one round trip, reset: processor time of the server\n{paired}"
    chart("churn", title, relative(data, keys), "Boost.Asio on epoll = 1", line=1.0)
    pieces = [
        ("await", "coroutine_call"),
        ("spawn, join", "spawn_join"),
        ("yield", "yield"),
        ("when_all\nof 100", "when_all_100"),
        ("channel", "channel"),
        ("timer,\n100 000", "timer_arm_cancel_100000"),
        ("timer, 8 turns,\n100 000", "timer_outlives_turns_100000"),
        ("post,\n64 of them", "post_same_thread_64"),
        ("resolve", "resolve_numeric"),
    ]
    keys = [(label, ("micro", name, "cpu_ns")) for label, name in pieces]
    chart("micro", f"Pieces of a loop\n{where}", absolute(data, keys), "nanoseconds", logarithmic=True)
    keys = [(label.replace(", ", ",\n").replace(" B ", " B\n"), key) for label, key in tables.WEB if key[0] == "web_answers"]
    title = f"Web servers, one worker: processor time of the server\n{paired}"
    chart("web_answers", title, relative(data, keys, "nginx"), "per request, nginx = 1", line=1.0, logarithmic=True)
    for case in dict.fromkeys(key[1] for key in data.medians if key[0] == "web_ab"):
        keys = [(f"{which} %", ("web_ab", case, f"p{which}_ms")) for which in (50, 90, 95, 99, 100)]
        title = f"ab, {case}: requests that are answered within\n{where}"
        chart(f"web_ab_{case}", title, absolute(data, keys), "milliseconds", logarithmic=True)
    for scenario, measure, title, axis in (
        ("memory_per_connection", "bytes_per_connection", "Memory of an idle connection", "bytes"),
        ("instructions", "instructions", "Instructions in user space per round trip", "instructions"),
        ("ab_matrix", "requests_per_s", "Echo under ab -k", "requests per second"),
        ("two_cores", "p50_ns", "Latency, one processor each: median", "nanoseconds"),
    ):
        keys = [(key[1], key) for key in data.medians if (key[0], key[2]) == (scenario, measure)]
        chart(scenario, f"{title}\n{where}", absolute(data, keys), axis)


def wanted(component, data):
    """The names of the figures that belong to the tables of a component, or of the README."""
    if component == "web":
        return ["web_answers"]
    if component == "web-ab":
        return [f"web_ab_{key[1]}" for key in data.medians if key[0] == "web_ab"]
    return [] if component else tables.FIGURES


def main():
    parser = argparse.ArgumentParser(
        prog="generate_perf_figures.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="FILE", help="a saved run (default: the latest one that has the figures)")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "figures"))
    parser.add_argument("--all", action="store_true", help="draw more than the README shows")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    parser.add_argument("--tables", action="store_true", help="print the tables, draw nothing")
    for name in tables.COMPONENTS:
        text = f"the tables of {name.upper()} and their figures, if there are any"
        parser.add_argument(f"--{name}", dest="component", action="store_const", const=name, help=text)
    parser.add_argument("--counts", action="store_true", help="print the counted figures of performance-counts.md")
    parser.add_argument("--update", metavar="FILE", help="write the tables between their marks in FILE")
    given = parser.parse_args()

    first = {None: "async_tcp_echo", "tls": "tls_echo", "http": "http_answers", "web": "web_answers", "web-ab": "web_ab"}
    file = given.data or newest(DATA, first[given.component])
    if not file:
        sys.exit("there is no complete run: run scripts/run_perf_suite.sh, or use --data")
    try:
        data = Data(os.path.abspath(file))
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        sys.exit(f"{file} was not written by the suite: {wrong}")
    if given.counts:
        print(tables.counts(data), end="")
        return
    if not given.tables:
        try:
            draw(data, given.out, given.format, None if given.all else wanted(given.component, data))
        except ImportError:
            sys.exit("matplotlib is missing: sudo apt-get install python3-matplotlib, and /usr/bin/python3")
    # Figures of another run, or elsewhere, do not belong to these tables.
    figures = os.path.abspath(given.out)
    inside = not given.tables and given.format == "svg" and not os.path.relpath(figures, ROOT).startswith("..")
    if given.component:
        text = tables.component_markdown(given.component, data, ROOT)
        marks = tables.component_marks(given.component)
    else:
        text, marks = tables.markdown(data, ROOT, figures if inside else ""), (tables.BEGIN, tables.END)
    print(text, end="")
    if given.update:
        with open(given.update) as file:
            before = file.read()
        try:
            after = tables.update(before, text, marks)
        except ValueError as wrong:
            sys.exit(f"{given.update} {wrong}")
        with open(given.update, "w") as file:
            file.write(after)
