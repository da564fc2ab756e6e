"""The tables of the README, in Markdown, from the data of a run."""

import os

from .data import BASE

OURS = {
    "ours_epoll_read_some": "libsimplenet, epoll, `read_some`",
    "ours_epoll_receive": "libsimplenet, epoll, `receive()`",
    "ours_io_uring_read_some": "libsimplenet, io_uring, `read_some`",
    "ours_io_uring_receive": "libsimplenet, io_uring, `receive()`",
}
OTHERS = {
    "asio_epoll": "Boost.Asio coroutines, epoll",
    "asio_io_uring": "Boost.Asio coroutines, io_uring",
    "tokio": "tokio, current thread",
    "libuv": "libuv",
    "libevent": "libevent",
    "bare_epoll": "bare epoll, no library",
    "bare_io_uring": "bare io_uring, no library",
}

BEGIN = "<!-- from here: python3 scripts/generate_perf_figures.py --update README.md; do not edit -->"
END = "<!-- to here: scripts/generate_perf_figures.py -->"
# The tables of a component have a place of their own, because they may come from another run.
COMPONENTS = {
    "tls": "README.md",
    "http": "README.md",
    "web": "README.md",
    "web-ab": "docs/development/performance-web.md",
}


def component_marks(name):
    return (
        f"<!-- from here: python3 scripts/generate_perf_figures.py --{name} --update {COMPONENTS[name]}; do not edit -->",
        f"<!-- to here: scripts/generate_perf_figures.py --{name} -->",
    )


# What stands beside the tables.
FIGURES = {"echo_64": "echo of 64 bytes: processor time of the server", "micro": "pieces of a loop: nanoseconds"}

ECHO = [
    *((f"64 B, {n}", ("async_tcp_echo", f"64B_{n}", "server_cpu_ns")) for n in (1, 10, 100, 1000)),
    ("16 KiB, 100", ("async_tcp_echo", "16384B_100", "server_cpu_ns")),
    ("connect and reset, 16", ("connection_churn", "16", "server_cpu_ns")),
]

# label, key, is a name of Asio's, unit
PIECES = [
    ("await a coroutine", ("micro", "coroutine_call", "cpu_ns"), "asio", "ns"),
    ("spawn and join", ("micro", "spawn_join", "cpu_ns"), "asio", "ns"),
    ("yield", ("micro", "yield", "cpu_ns"), "asio", "ns"),
    ("`when_all` of 100", ("micro", "when_all_100", "cpu_ns"), "asio", "ns"),
    ("channel, there and back", ("micro", "channel", "cpu_ns"), "asio", "ns"),
    ("timer set and cancelled, 100 000 pending", ("micro", "timer_arm_cancel_100000", "cpu_ns"), "asio", "ns"),
    ("timer that outlives eight turns, 100 000 pending", ("micro", "timer_outlives_turns_100000", "cpu_ns"), "asio", "ns"),
    ("post, same thread, 64 of them", ("micro", "post_same_thread_64", "cpu_ns"), "asio", "ns"),
    ("resolve a numeric host", ("micro", "resolve_numeric", "cpu_ns"), "asio", "ns"),
    ("wait of 100 us without an event", ("idle_wait", "100us", "cpu_ns"), "asio_epoll", "ns"),
    ("datagram of 64 bytes, one at a time", ("udp", "64B_one_by_one", "cpu_ns"), "asio", "ns"),
    ("datagram of 64 bytes, in batches", ("udp", "64B_batch", "cpu_ns"), "asio", "ns"),
    ("stream of 64 KiB blocks, per MiB", ("streaming", "64KiB_1", "server_cpu_us_per_mib"), "asio_epoll", "us"),
    ("message queued 16 times, 100 connections", ("queued_writer", "64B_100_x16", "server_cpu_ns"), "asio_epoll", "ns"),
    ("connection of a storm of 1000", ("accept_storm", "1000", "server_cpu_ns"), "asio_epoll", "ns"),
]

PER_CONNECTION = [
    ("memory of an idle connection, of 10 000", ("memory_per_connection", "10000", "bytes_per_connection"), "B"),
    ("instructions in user space, 64 B, 1 connection", ("instructions", "epoll-1", "instructions"), ""),
    ("instructions in user space, 64 B, 100", ("instructions", "epoll-100", "instructions"), ""),
    ("system calls, 64 B, 100", ("system_calls", "echo_64B_100", "system_calls"), ""),
    ("system calls, connect and reset", ("system_calls", "churn_16", "system_calls"), ""),
    ("allocations, 64 B, 100", ("allocations", "echo_64B_100", "allocations"), ""),
]

LOOPS = [
    *((f"64 B, {n}", ("many_loops", f"64B_{n}", "server_cpu_ns")) for n in (100, 1000)),
    *(
        (f"one processor, {size} KiB, {n}", ("many_loops_matrix", f"{size}KiB_{n}", "server_cpu_ns"))
        for size, n in ((4, 1), (4, 100), (16, 100))
    ),
    ("one processor, 64 B, 5000", ("many_loops_matrix", "64B_5000", "server_cpu_ns")),
]
SERVERS_ON_LOOPS = {
    "ours_epoll": "libsimplenet, two loops, epoll",
    "ours_io_uring": "libsimplenet, two loops, io_uring",
    "ours_epoll_steered": "the same steered by CPU, epoll",
    "ours_io_uring_steered": "the same steered by CPU, io_uring",
    "one_loop_epoll": "libsimplenet, one loop, epoll",
    "one_loop_io_uring": "libsimplenet, one loop, io_uring",
    "asio_threads": "Boost.Asio, an `io_context` for each of two threads",
    "asio_shared": "Boost.Asio, one `io_context` for two threads",
}

BALANCE = [
    (f"{label}, {n} loops", ("loop_balance", f"{way}_{n}", "worst_busiest"))
    for label, way in (("one by one", "steady"), ("at once", "storm"), ("while others end", "churn"))
    for n in (2, 4, 8)
]
WAYS_TO_BALANCE = {
    "ours_epoll": "handed over, epoll",
    "ours_io_uring": "handed over, io_uring",
    "reuse_port_epoll": "as the kernel chose, epoll",
    "reuse_port_io_uring": "as the kernel chose, io_uring",
}


TLS = [
    ("echo, 64 B, 1", ("tls_echo", "64B_1", "server_cpu_ns")),
    ("echo, 64 B, 100", ("tls_echo", "64B_100", "server_cpu_ns")),
    ("echo, 16 KiB, 100", ("tls_echo", "16384B_100", "server_cpu_ns")),
    ("sending, 64 KiB writes", ("tls_send", "65536B", "server_cpu_us_per_mib")),
    ("sending, 16 KiB writes", ("tls_send", "16384B", "server_cpu_us_per_mib")),
    ("receiving", ("tls_receive", "65536B", "server_cpu_us_per_mib")),
    ("full handshake", ("tls_handshakes", "full", "server_cpu_ns")),
    ("resumed handshake", ("tls_handshakes", "resumed", "server_cpu_ns")),
    ("memory of an idle connection", ("tls_idle_memory", "1000", "bytes_per_connection")),
]
TLS_SERVERS = {
    "ours_epoll": "libsimplenet, epoll",
    "ours_io_uring": "libsimplenet, io_uring",
    "ours_epoll_readable": "the same without a buffer of its own, epoll",
    "ours_io_uring_readable": "the same without a buffer of its own, io_uring",
    "asio_epoll": "Boost.Asio, epoll",
    "asio_io_uring": "Boost.Asio, io_uring",
    "bare_epoll": "OpenSSL on bare epoll, no library",
}
TLS_LOOPS = [(f"64 B, {n}", ("tls_many_loops", f"64B_{n}", "server_cpu_ns")) for n in (100, 1000)]
TLS_SERVERS_ON_LOOPS = {
    "ours_epoll": "libsimplenet, two loops, epoll",
    "one_loop_epoll": "libsimplenet, one loop, epoll",
    "ours_io_uring": "libsimplenet, two loops, io_uring",
    "one_loop_io_uring": "libsimplenet, one loop, io_uring",
    "asio_threads": "Boost.Asio, an `io_context` for each of two threads",
}


HTTP = [
    ("fixed answer, 100", ("http_answers", "hello_100", "server_cpu_ns")),
    ("the same, a browser's head", ("http_answers", "browser_100", "server_cpu_ns")),
    ("fixed answer, 1", ("http_answers", "hello_1", "server_cpu_ns")),
    ("16 pipelined", ("http_answers", "pipelined_16", "server_cpu_ns")),
    ("file, 612 B", ("http_answers", "file_612B_100", "server_cpu_ns")),
    ("the same from memory", ("http_answers", "memory_612B_100", "server_cpu_ns")),
    ("file, 1 MiB", ("http_answers", "file_1MiB_100", "server_cpu_ns")),
    ("memory of an idle connection", ("http_idle_memory", "5000", "bytes_per_connection")),
]
HTTP_SERVERS = {
    "ours_epoll": "libsimplenet, epoll",
    "ours_io_uring": "libsimplenet, io_uring",
    "nginx": "nginx, with `tcp_nopush` and `open_file_cache`",
    "nginx_defaults": "nginx without them, as Debian installs it",
    "beast": "Boost.Beast, epoll",
}


WEB = [
    ("fixed answer, 100", ("web_answers", "hello_100", "server_cpu_ns")),
    ("file, 612 B", ("web_answers", "file_612B_100", "server_cpu_ns")),
    ("10 KiB", ("web_answers", "file_10KiB_100", "server_cpu_ns")),
    ("1 MiB", ("web_answers", "file_1MiB_100", "server_cpu_ns")),
    ("612 B over TLS", ("web_answers", "tls_612B_100", "server_cpu_ns")),
    ("612 B by proxy", ("web_answers", "proxied_612B_100", "server_cpu_ns")),
    ("PHP, 4", ("web_answers", "php_4", "server_cpu_ns")),
    ("p99, 1000", ("web_latency", "file_612B_1000", "p99_ns")),
    ("memory, 10 000", ("web_idle_memory", "10000", "bytes_per_connection")),
]
WEB_SERVERS = {
    "ours_epoll": "simplenet-httpd, epoll",
    "ours_io_uring": "simplenet-httpd, io_uring",
    "nginx": "nginx, one worker, with `tcp_nopush` and `open_file_cache`",
    "nginx_debian": "nginx, as Debian configures it",
    "apache": "Apache, event MPM, as Debian configures it",
    "bare_epoll": "the system calls alone, epoll, no HTTP",
    "bare_io_uring": "the system calls alone, io_uring, no HTTP",
}


def number(value):
    if value == 0:
        return "0"
    if abs(value) < 10:
        return f"{value:.2f}"
    return f"{value:,.0f}".replace(",", " ")


def grid(head, rows):
    """A Markdown table; empty if no row has a figure."""
    rows = [row for row in rows if any(each != "-" for each in row[1:])]
    if not rows:
        return []
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def present(data, keys):
    return [(label, key) for label, key in keys if key in data.medians]


def cost_table(data, keys, names, base, head="processor time of the server"):
    """The cost as a multiple of that of `base`."""
    columns = present(data, keys)

    def cell(key, subject):
        found = data.cost(key, subject, base)
        if not found:
            return "-"
        return ("≈ " if data.unclear(key, subject, base) else "") + f"{found[0]:.2f}"

    rows = [[name, *(cell(key, subject) for _, key in columns)] for subject, name in names.items()]
    return grid([head, *(label for label, _ in columns)], rows)


def echo_table(data):
    return cost_table(data, ECHO, {**OURS, **OTHERS}, BASE)


def loops_table(data):
    return cost_table(data, LOOPS, SERVERS_ON_LOOPS, "asio_threads")


def balance_table(data):
    columns = present(data, BALANCE)
    values = [data.medians[key] for _, key in columns]
    rows = [
        [name, *(number(each[subject]) if subject in each else "-" for each in values)]
        for subject, name in WAYS_TO_BALANCE.items()
    ]
    return grid(["busiest loop / mean", *(label for label, _ in columns)], rows)


def pieces_table(data):
    rows = []
    for label, key, asio, unit in PIECES:
        values = data.medians.get(key, {})
        row = [f"{label}, {unit}"]
        row += [number(values[name]) if name in values else "-" for name in ("ours_epoll", "ours_io_uring", asio, "tokio")]
        if not {"ours_epoll", "ours_io_uring"} & values.keys():
            # Of a server that reads in two ways only the plain one is shown here.
            for at, name in ((1, "ours_epoll_read_some"), (2, "ours_io_uring_read_some")):
                row[at] = number(values[name]) if name in values else "-"
        for ours in ("ours_epoll", "ours_io_uring"):
            ours = ours if ours in values else f"{ours}_read_some"
            found = data.cost(key, asio, ours)
            row.append("-" if not found else ("≈ " if data.unclear(key, ours, asio) else "") + f"{found[0]:.2f}")
        rows.append(row)
    head = ["processor time", "epoll", "io_uring", "Boost.Asio", "tokio", "Asio / epoll", "Asio / io_uring"]
    return grid(head, rows)


def connection_table(data):
    columns = [(f"{label}{', ' + unit if unit else ''}", key) for label, key, unit in PER_CONNECTION]
    columns = present(data, columns)

    def cell(key, subject):
        values = data.medians[key]
        return number(values[subject]) if subject in values else "-"

    rows = [[name, *(cell(key, subject) for _, key in columns)] for subject, name in {**OURS, **OTHERS}.items()]
    return grid(["cost per round trip or connection", *(label for label, _ in columns)], rows)


def calls_table(data, case):
    """Which system calls a server makes per round trip; one column for each call."""
    prefix = "calls_"
    found = {
        key[2].removeprefix(prefix): values
        for key, values in data.medians.items()
        if key[:2] == ("system_calls", case) and key[2].startswith(prefix)
    }
    names = sorted(found, key=lambda name: -max(found[name].values()))
    totals = data.medians.get(("system_calls", case, "system_calls"), {})

    def show(value):
        return f"{value:.2f}" if value else ""

    rows = [
        [label, *(show(found[name].get(subject)) for name in names), show(totals.get(subject)) or "-"]
        for subject, label in {**OURS, **OTHERS}.items()
        if subject in totals
    ]
    return grid([case.replace("_", ", "), *names, "all"], rows)


def instructions_table(data):
    cases = sorted({key[1] for key in data.medians if key[0] == "instructions"})
    values = [data.medians["instructions", case, "instructions"] for case in cases]
    names = {"ours_epoll_limits": "libsimplenet, epoll, limits around both operations", **OURS, **OTHERS}
    rows = [
        [label, *(number(each[subject]) if subject in each else "-" for each in values)]
        for subject, label in names.items()
    ]
    return grid(["instructions in user space", *cases], rows)


def counts(data):
    """The counted figures, by strace and callgrind, for performance-counts.md."""
    cases = dict.fromkeys(key[1] for key in data.medians if key[0] == "system_calls")
    parts = [calls_table(data, case) for case in cases] + [instructions_table(data)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def source(data, root, first=ECHO, option="", folder=""):
    """Where the figures are from; `first` are the keys of the first table, `folder` is that of the page."""
    meta = data.meta
    place = os.path.relpath(data.file, os.path.join(root, folder))
    guide = os.path.relpath("docs/development/performance.md", folder or ".")
    where = f"[{place}]({place})" if not place.startswith("..") else f"`{os.path.basename(data.file)}`"
    noise = sorted(data.noise.get(key, 0.0) for _, key in first if key in data.noise)
    lines = [
        f"Measured on {meta['date']} at commit {meta['commit']}: {meta['processor']}, "
        f"{meta['processors']} processors, Linux {meta['kernel']},",
        f"{meta['compiler']} {meta['flags']}, "
        f"Boost {meta['boost']}, tokio {meta['tokio']}, libuv {meta['libuv']}, libevent {meta['libevent']}.",
        f"{data.settings['repeats']} alternating rounds; the figures are medians of the ratios within a round.",
        "`≈` marks a tie: a difference inside the noise of the run.",
    ]
    if noise:
        lines.append(f"In the first table a program differed from itself by up to {100 * noise[-1]:.1f} %.")
    if not option and not meta.get("complete"):
        lines.append("**The run was not completed.**")
    if meta.get("busy", 0) > 0.15:
        lines.append(f"**Other programs used {meta['busy']:.2f} processors when it began.**")
    lines.append(
        f"`python3 scripts/generate_perf_figures.py{option}` made these tables from\n{where};\n"
        f"[{guide}]({guide}) explains the measurements."
    )
    return ["\n".join(lines)]


def picture(root, figures, name):
    """A link from the README to a figure, if it was drawn."""
    place = os.path.join(figures, f"{name}.svg")
    return [f"![{FIGURES[name]}]({os.path.relpath(place, root)})"] if figures and os.path.exists(place) else []


def markdown(data, root, figures=""):
    """The tables, and the figures drawn from the same data in the directory `figures`."""
    parts = [
        [
            "Echo with a server and a client on one processor; the columns give the message size and the number of connections.",
            "Boost.Asio's coroutines on epoll are 1.00; less is better.",
        ],
        echo_table(data),
        picture(root, figures, "echo_64"),
        ["Single operations, beside Boost.Asio on epoll and tokio. The last two columns: how many times faster than Asio."],
        pieces_table(data),
        picture(root, figures, "micro"),
        [
            "Cost per round trip or connection. The memory includes the server's own buffer, a page, except with `receive()` and in",
            "the bare io_uring server, whose connections share buffers. `-`: callgrind, which counts instructions, does not support",
            "io_uring.",
        ],
        connection_table(data),
        [
            "Echo servers on two threads, and clients on all processors unless a column says otherwise. Boost.Asio with an",
            "`io_context` for each thread is 1.00; less is better.",
        ],
        loops_table(data),
        ["How even the loads of the loops are with 1000 connections; the worst of several servers."],
        balance_table(data),
        source(data, root),
    ]
    return joined(parts, headings=(0, 3, 6, 8, 10))


def joined(parts, headings):
    """The parts as one text, without a heading whose table is empty."""
    kept = []
    for at, part in enumerate(parts):
        if part and not (at in headings and not parts[at + 1]):
            kept.append("\n".join(part))
    return "\n\n".join(kept) + "\n"


def tls_markdown(data, root):
    """The tables of TLS."""
    parts = [
        [
            "TLS 1.3 with AES-256-GCM and a key on P-256: processor time of the server, and memory, beside `asio::ssl` on epoll,",
            "which is 1.00. Less is better. Servers have a buffer for each connection, a page, unless the table says otherwise.",
        ],
        cost_table(data, TLS, TLS_SERVERS, BASE, "cost of the server"),
        ["Echo over TLS on two loops and on one, beside `asio::ssl` on two threads."],
        cost_table(data, TLS_LOOPS, TLS_SERVERS_ON_LOOPS, "asio_threads"),
        source(data, root, TLS, " --tls"),
    ]
    return joined(parts, headings=(0, 2))


def http_markdown(data, root):
    """The tables of HTTP."""
    parts = [
        [
            "HTTP/1.1 over TCP: processor time of the server for a request of `wrk`, and memory, beside nginx 1.22, which is 1.00.",
            "Less is better. One loop and one worker; no access log. The memory is what connections add; nginx makes a part of it",
            "ready when it starts.",
        ],
        cost_table(data, HTTP, HTTP_SERVERS, "nginx", "cost of the server"),
        source(data, root, HTTP, " --http"),
    ]
    return joined(parts, headings=(0,))


def web_markdown(data, root):
    """The costs of web servers."""
    parts = [
        [
            "Web servers under `wrk`, beside nginx, which is 1.00: processor time of the server for a request, without that of PHP",
            "and of the server behind the proxy; how long the slowest of a hundred requests waits; memory. Less is better. The last",
            "rows are servers that only make the system calls (over TLS those of OpenSSL), with the same bytes whatever comes: what a",
            "server costs beyond them is its own.",
        ],
        cost_table(data, WEB, WEB_SERVERS, "nginx", "cost of the server"),
        source(data, root, WEB, " --web"),
    ]
    return joined(parts, headings=(0,))


def web_ab_markdown(data, root):
    """The percentiles of ab, for web servers."""
    parts = []
    for case in dict.fromkeys(key[1] for key in data.medians if key[0] == "web_ab"):
        rows = []
        measures = ["requests_per_s", *(f"p{which}_ms" for which in (50, 66, 75, 80, 90, 95, 98, 99, 100))]
        for subject, label in WEB_SERVERS.items():
            values = [data.medians.get(("web_ab", case, each), {}).get(subject) for each in measures]
            rows.append([label, *("-" if each is None else number(each) for each in values)])
        head = [f"ab, {case.replace('_', ' ')}", "1/s", *(f"{each[1:-3]} % ms" for each in measures[1:])]
        parts.append(grid(head, rows))
        parts.append([f"![the same, drawn](../figures/web_ab_{case}.svg)"])
    return joined([*parts, source(data, root, (), " --web-ab", "docs/development")], headings=())


def component_markdown(name, data, root):
    made = {"tls": tls_markdown, "http": http_markdown, "web": web_markdown, "web-ab": web_ab_markdown}
    return made[name](data, root)


def update(text, tables, marks=(BEGIN, END)):
    """`text` with the tables between the two marks; ValueError if it lacks them."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError("has no lines\n" + "\n".join(marks))
    return f"{before}{begin}\n\n{tables}\n{end}{after}"
