#!/usr/bin/env python3
"""Memory, processor time and wake-ups of a server whose connections are idle, on both backends.

The server is a tcp_server on --loops loops with a time limit for idle connections, the clients are
load_client with several source addresses. If there are more connections than a process may have
descriptors, there are several clients, and each loop of the server has descriptors of its own. Memory is the growth for each connection that has made one
round trip: RssAnon and Pss of the server, and apart from it the kernel's memory for both ends.
Processor time and wake-ups (voluntary context switches of all threads) are counted while nothing
happens. Needs a Release build of the benchmarks.

    python3 benchmarks/measure_idle.py --build build/perf --connections 50000
"""

import argparse
import contextlib
import os
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import programs  # noqa: E402


def field(path, name):
    with open(path) as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    raise SystemExit(f"no {name} in {path}")


def wake_ups(pid):
    threads = f"/proc/{pid}/task"
    return sum(field(f"{threads}/{each}/status", "voluntary_ctxt_switches") for each in os.listdir(threads))


def memory(pid):
    """In KiB: the server's RssAnon and Pss, and the kernel's memory for sockets and their like."""
    meminfo = "/proc/meminfo"
    return (
        field(f"/proc/{pid}/status", "RssAnon"),
        field(f"/proc/{pid}/smaps_rollup", "Pss"),
        field(meminfo, "Slab"),
    )


def measure(given, backend, limit):
    # Descriptors of loops, files and the other end are not connections; the kernel's choice of a loop
    # is uneven by a few per cent.
    room = int((limit - 200) * 0.95)
    command = [
        os.path.join(given.build, "benchmarks/echo_server"),
        *("--backend", backend, "--read-mode", "receive", "--idle", str(given.idle)),
    ]
    loops = given.loops
    if given.connections > limit - 200:
        loops = max(loops, -(-given.connections // room))
        command += ["--balance", "round_robin", "--own-descriptors", "1"]
    command += ["--loops", str(loops)]
    client = os.path.join(given.build, "benchmarks/load_client")
    clients = -(-given.connections // (limit - 200))
    each = given.connections // clients
    count = each * clients
    load = {"connections": each, "round-trips": each, "size": 64, "sources": 1 + count // 20000}
    with programs.Server(command, None) as server, contextlib.ExitStack() as loads:
        before = memory(server.pid)
        for _ in range(clients):
            loads.enter_context(programs.HeldLoad(client, server, None, load, 120))
        after = memory(server.pid)
        time.sleep(1)
        cpu, woken = programs.processor_ns(server.pid), wake_ups(server.pid)
        time.sleep(given.seconds)
        cpu, woken = programs.processor_ns(server.pid) - cpu, wake_ups(server.pid) - woken
    anonymous, pss, kernel = ((now - then) * 1024 / count for now, then in zip(after, before))
    print(
        f"| {backend} | {count} | {loops} | {anonymous:.0f} | {pss:.0f} | {kernel:.0f} | "
        f"{cpu / given.seconds / 1e7:.3f} % | {woken / given.seconds / loops:.2f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default="build/perf")
    parser.add_argument("--connections", type=int, default=50000)
    parser.add_argument("--loops", type=int, default=2, help="more, if their descriptors do not suffice")
    parser.add_argument("--idle", type=int, default=60, help="seconds; more than the measurement takes")
    parser.add_argument("--seconds", type=int, default=10, help="of the idle time that is measured")
    given = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    print("| backend | connections | loops | RssAnon, bytes | Pss | kernel, both ends | CPU | wake-ups/s of a loop |")
    print("|---|---|---|---|---|---|---|---|")
    for backend in ("epoll", "io_uring"):
        measure(given, backend, limit)


if __name__ == "__main__":
    main()
