"""Counted measures: memory, allocations, instructions, system calls."""

import dataclasses
import os
import re
import resource
import sys
import tempfile
import time

from .. import lines, programs
from ..programs import Failed
from ..subjects import Subject
from .cases import FEW, Case
from .pieces import waiters


def memory_of(settings, scenario, count, subjects, client, more=None):
    """The case of `count` connections that have echoed once and are then silent; `more` options of the client."""
    need = count + 100

    def measure(subject, _):
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft < need:
            raise Failed(f"{need} descriptors needed, the limit is {soft}")
        with programs.Server(subject.command, settings.server_cpu) as server:
            before = programs.anonymous_bytes(server.pid)
            options = {"size": 64, "connections": count, "round-trips": count, **(more or {})}
            with programs.HeldLoad(client, server, settings.server_cpu, options, settings.timeout):
                after = programs.anonymous_bytes(server.pid)
        return {"bytes_per_connection": (after - before) / count}

    return Case(
        scenario,
        str(count),
        subjects,
        measure,
        ["bytes_per_connection"],
        seconds=0.2 + count / 10000,
        repeats=2,
    )


def memory_per_connection(tools):
    """Growth of RssAnon for each connection that has echoed once and is then silent."""
    settings = tools.settings
    subjects = tools.chosen(tools.echo(4096), FEW)
    yield memory_of(settings, "memory_per_connection", settings.idle_connections, subjects, tools.client)


def allocations_of(tools, scenario, name, subjects, options, client):
    """The case that counts malloc(3) and relatives per round trip, in the steady state."""
    settings = tools.settings
    counter = tools.path("count_allocations.so")
    trips = settings.allocation_round_trips

    def measure(subject, _):
        if not os.path.exists(counter):
            raise Failed("count_allocations.so was not built")
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(8))
            file.flush()
            environment = {"LD_PRELOAD": counter, "COUNT_ALLOCATIONS": file.name}

            def count():
                with open(file.name, "rb") as now:
                    return int.from_bytes(now.read(8), sys.byteorder)

            with programs.Server(subject.command, settings.server_cpu, environment) as server:

                def load(amount):
                    given = {**options, "round-trips": amount}
                    programs.run_load(client, server, settings.server_cpu, given, settings.timeout)
                    time.sleep(0.05)  # lets the server see the ends; not counted
                    return count()

                if load(trips) == 0:
                    raise Failed("the counter saw no calls: not glibc, or linked statically")
                # The second run includes all of the first and `trips` more round trips.
                one = -count() + load(trips)
                two = -count() + load(2 * trips)
        return {"allocations": max(two - one, 0) / trips}

    return Case(scenario, name, subjects, measure, ["allocations"], seconds=1.5, repeatable=True)


def count_allocations(tools):
    """malloc(3) and relatives per round trip, in the steady state."""
    settings = tools.settings
    stream = [each for each in tools.stream("queue", "--copies", settings.copies) if each.command]
    loads = [
        ("echo_64B_100", tools.echo(4096), {"size": 64, "connections": 100}),
        ("churn_16", tools.echo(4096), {"size": 64, "connections": 16, "churn": 1}),
        ("queue_64B_100", stream, {"size": 64, "connections": 100, "copies": settings.copies}),
    ]
    for name, subjects, options in loads if settings.mode == "full" else loads[:1]:
        yield allocations_of(tools, "allocations", name, tools.kept(subjects, FEW), options, tools.client)


def callgrind(tools, subject, connections):
    """Instructions per round trip: the difference of a short and a long run."""
    settings = tools.settings
    trips = settings.callgrind_round_trips

    def run(amount, directory):
        out = os.path.join(directory, f"callgrind.{amount}")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *subject.command]
        with programs.Server(command, settings.server_cpu) as server:
            programs.run_load(
                tools.client,
                server,
                settings.server_cpu,
                {"size": 64, "connections": connections, "round-trips": amount},
                settings.timeout,
            )
            server.end()
        try:
            with open(out) as file:
                total = re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)
        except OSError:
            total = None
        if not total:
            raise Failed("callgrind left no summary")
        return int(total.group(1))

    with tempfile.TemporaryDirectory() as directory:
        return (run(3 * trips, directory) - run(trips, directory)) / (2 * trips)


def instructions(tools):
    """User-space instructions of the server per 64-byte round trip, with callgrind.

    The difference of a short and a long run, both ends on one processor; repeats agree within 0.5 %. valgrind
    cannot run io_uring: scripts/perf_check.sh single-steps that.
    """
    settings = tools.settings
    if not programs.have("valgrind"):
        raise Failed("valgrind is not installed")

    def measure_with(connections):
        def measure(subject, _):
            found = callgrind(tools, subject, connections)
            if subject.name == "ours_epoll_limits":
                plain = plains.get(connections)
                return {"instructions": found, **({"adds": found - plain} if plain else {})}
            if subject.name == "ours_epoll_read_some":
                plains[connections] = found
            return {"instructions": found}

        return measure

    plains = {}
    echo = tools.echo(4096)
    first = next(each for each in echo if each.name == "ours_epoll_read_some")
    limits = dataclasses.replace(
        first, name="ours_epoll_limits", command=[*first.command, "--limit", "30"]
    )
    subjects = [each for each in echo if each.backend == "epoll" and each.ours]
    subjects += [limits] + [each for each in echo if each.backend == "epoll" and not each.ours]
    if settings.mode == "quick":
        wanted = ("ours_epoll_read_some", "ours_epoll_limits", "asio_epoll")
        subjects = [each for each in subjects if each.name in wanted]
    for connections in (1, 100) if settings.mode == "full" else (100,):
        yield Case(
            "instructions",
            f"epoll-{connections}",
            tools.kept(subjects),
            measure_with(connections),
            ["instructions"],
            seconds=2 + settings.callgrind_round_trips / 1250,
            repeatable=True,
        )


def instructions_io_uring(tools):
    """The same on io_uring, where the server is single-stepped (scripts/perf_check.sh)."""
    settings = tools.settings
    if settings.mode == "quick":
        return
    subject = Subject("ours", [os.path.join(tools.root, "scripts", "perf_check.sh")], ours=True)

    for case in ("1", "100", "receive-1", "receive-100", "limit-1", "limit-100"):

        def measure(subject, _, case=case):
            said = programs.run_text(  # fmt: skip
                [*subject.command, "instructions", "--no-build", "--build", tools.build,
                 "--cpu", str(settings.server_cpu), "--case", f"^io_uring-{case}$"],
                None,
                600,
            )
            found = re.search(r"(\d+\.\d+) instructions", said)
            if not found:
                raise Failed("perf_check.sh said nothing")
            return {"instructions": float(found.group(1))}

        yield Case(
            "instructions_io_uring", case, [subject], measure, ["instructions"], seconds=30, repeatable=True
        )


def strace_counts(tools, subject, options, trips):
    """{call: count} of a server and its threads while it serves, from `strace -c`."""
    settings = tools.settings
    with tempfile.NamedTemporaryFile("r") as file:
        # -D: the server stays our child and strace is its grandchild, which ends with the server.
        command = ["strace", "-D", "-f", "-c", "-o", file.name, *subject.command]
        with programs.Server(command, settings.server_cpu) as server:
            given = {**options, "round-trips": trips}
            programs.run_load(tools.client, server, settings.server_cpu, given, settings.timeout)
            time.sleep(0.05)  # lets the server see the ends
            server.end()
        give_up = time.monotonic() + 20
        while " total\n" not in (said := open_again(file.name)):
            if time.monotonic() > give_up:
                raise Failed("strace left no summary")
            time.sleep(0.02)
    row = re.compile(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z]\w*)$", re.M)
    return {name: int(times) for times, name in row.findall(said) if name != "total"}


def open_again(name):
    with open(name) as file:
        return file.read()


def system_calls(tools):
    """System calls of a server per round trip, by name: the difference of a short and a long run."""
    settings = tools.settings
    if not programs.have("strace"):
        raise Failed("strace is not installed")

    def measure_with(options):
        trips = max(settings.strace_round_trips // options["connections"], 2) * options["connections"]

        def measure(subject, _):
            few = strace_counts(tools, subject, options, trips)
            many = strace_counts(tools, subject, options, 3 * trips)
            found = {name: (count - few.get(name, 0)) / (2 * trips) for name, count in many.items()}
            return {
                "system_calls": sum(found.values()),
                **{f"calls_{name}": each for name, each in found.items() if each >= 0.005},
            }

        return measure

    loads = [
        ("echo_64B_1", tools.echo(4096), {"size": 64, "connections": 1}),
        ("echo_64B_100", tools.echo(4096), {"size": 64, "connections": 100}),
        ("echo_16384B_100", tools.echo(16384), {"size": 16384, "connections": 100}),
        ("churn_16", tools.echo(4096), {"size": 64, "connections": 16, "churn": 1}),
    ]
    for name, subjects, options in loads if settings.mode == "full" else loads[1:2]:
        yield Case(
            "system_calls",
            name,
            tools.kept(subjects, FEW),
            measure_with(options),
            ["system_calls"],
            seconds=0.5 + settings.strace_round_trips / 1000,
            repeatable=True,
        )


def post_system_calls(tools):
    """System calls of a thread that posts to a loop that is awake, with strace; per post."""
    if not programs.have("strace"):
        raise Failed("strace is not installed")
    counts = (200, 2200)

    def calls(subject, count):
        with tempfile.NamedTemporaryFile("r") as file:
            said = programs.run_text(
                ["strace", "-f", "-qq", "-o", file.name, *subject.command, "--what", "post_awake",
                 "--count", str(count)],
                None,
                tools.settings.timeout,
            )  # fmt: skip
            thread = str(int(lines.numbers(said)["thread"]))
            return sum(line.split(" ", 1)[0] == thread for line in file)

    def measure(subject, _):
        few, many = (calls(subject, count) for count in counts)
        return {"system_calls": max(many - few, 0) / (counts[1] - counts[0])}

    yield Case(
        "post_system_calls",
        "awake",
        tools.kept(waiters(tools)),
        measure,
        ["system_calls"],
        seconds=1,
        repeatable=True,
    )
