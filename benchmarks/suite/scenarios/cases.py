"""The parts of a scenario, and the load client against a server."""

import dataclasses
import os
import sys
import typing

import web_servers

from .. import programs
from ..subjects import Subject

# Measures for which more is better; for all others less is better.
MORE_IS_BETTER = {"mib_per_s", "round_trips_per_s", "requests_per_s", "messages_per_s"}

UNITS = {
    "server_cpu_ns": "ns",
    "wall_ns": "ns",
    "p50_ns": "ns",
    "p99_ns": "ns",
    "p99_to_p50": "ratio",
    "cpu_ns": "ns",
    "mib_per_s": "MiB/s",
    "server_cpu_us_per_mib": "us",
    "round_trips_per_s": "1/s",
    "requests_per_s": "1/s",
    "bytes_per_connection": "B",
    "added_bytes": "B",
    "start_ms": "ms",
    **{f"p{which}_ms": "ms" for which in (50, 66, 75, 80, 90, 95, 98, 99, 100)},
    "instructions": "instructions",
    "adds": "instructions",
    "allocations": "allocations",
    "system_calls": "calls",
    "busiest": "ratio",
    "worst_busiest": "ratio",
}


@dataclasses.dataclass
class Case:
    scenario: str
    name: str
    subjects: list
    measure: typing.Callable  # (subject, amount) -> {measure: value}
    main: list  # the measures that are compared
    calibrate: typing.Callable = None  # (subject) -> amount, once for all subjects
    seconds: float = 1.0  # about how long a run takes, to estimate the remaining time
    parameters: dict = dataclasses.field(default_factory=dict)
    repeats: int = 0  # 0: as in the settings
    repeatable: bool = False  # counts, not clocks: one round is enough, and there is no noise
    configurations: typing.Callable = None  # () -> [(subject, text)], printed for people


# In quick mode the less central scenarios have fewer subjects.
FEW = "^(asio|asio_epoll|tokio|bare|bare_epoll|asyncio)$"


def load_case(
    tools,
    scenario,
    name,
    subjects,
    options,
    main,
    both_on_one=True,
    extra=None,
    quick=FEW,
    seconds=None,
    everywhere=False,
    client=None,
):
    """The load client, or another `client`, against each server; figures are per round trip.

    With `everywhere` both may use all processors.
    """
    settings = tools.settings
    seconds = seconds or settings.seconds
    server_cpu = settings.server_cpu
    client_cpu = server_cpu if both_on_one else settings.client_cpu
    if everywhere:
        server_cpu = client_cpu = None
    connections = options["connections"]

    def run(subject, amount, warm_up):
        with programs.Server(subject.command, server_cpu, subject.environment) as server:
            given = {**options, "round-trips": amount, "warm-up": warm_up}
            return programs.run_load(client or tools.client, server, client_cpu, given, settings.timeout)

    def calibrate(subject):
        if settings.round_trips:
            return settings.round_trips
        probe = max(2 * connections, 1000)
        figures = run(subject, probe, connections)
        amount = int(seconds * 1e9 / (figures["wall_ns"] / probe))
        return max(amount // connections, 2) * connections

    def measure(subject, amount):
        warm_up = max(int(amount * settings.warm_up) // connections, 1) * connections
        figures = run(subject, amount, warm_up)
        found = {
            "server_cpu_ns": figures["peer_cpu_ns"] / amount,
            "wall_ns": figures["wall_ns"] / amount,
            "p50_ns": figures["p50_ns"],
            "p99_ns": figures["p99_ns"],
            "p99_to_p50": figures["p99_ns"] / max(figures["p50_ns"], 1),
        }
        if extra:
            found.update(extra(figures, amount))
        return found

    return Case(
        scenario,
        name,
        tools.chosen(subjects, quick),
        measure,
        main,
        calibrate,
        seconds * (1 + settings.warm_up) + 0.15,
        {**options, "processors": "all" if everywhere else 1 if both_on_one else 2},
    )


def buffer_for(size):
    """The same for every server: a page, or the size of the message if that is larger."""
    return max(4096, size)


WEB_SERVERS = {"nginx": ("nginx", "nginx-light"), "apache": ("apache2", "apache2-bin")}


def web_server(tools, kind, *arguments, name=None, **how):
    """A server of benchmarks/web_servers.py; a part of it may be missing in `arguments`."""
    script = os.path.join(tools.root, "benchmarks", "web_servers.py")
    program, package = WEB_SERVERS.get(kind.split("_")[0], (None, None))
    missing = f"{program} is not installed ({package})" if program and not web_servers.find(program) else ""
    return Subject(name or kind, [sys.executable, script, kind, *map(str, arguments)], missing=missing, **how)
