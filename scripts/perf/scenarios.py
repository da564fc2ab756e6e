"""The scenarios: each yields cases, and a case knows how to measure one subject once."""

import dataclasses
import os
import re
import typing

from . import programs
from .programs import Failed

# Measures of which more is better; of all others less is.
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
    "instructions": "instructions",
    "allocations": "allocations",
}


@dataclasses.dataclass
class Case:
    scenario: str
    name: str
    subjects: list
    measure: typing.Callable  # (subject, amount) -> {measure: value}
    main: list  # the measures that are compared
    calibrate: typing.Callable = None  # (subject) -> amount, once for all subjects
    seconds: float = 1.0  # about how long a run takes, for the time left
    parameters: dict = dataclasses.field(default_factory=dict)
    repeats: int = 0  # 0: as the settings say
    repeatable: bool = False  # counts, not clocks: one round is enough and there is no noise


def load_case(tools, scenario, name, subjects, options, main, both_on_one=True, extra=None):
    """The load client against each server; figures are for a round trip."""
    settings = tools.settings
    server_cpu = settings.server_cpu
    client_cpu = server_cpu if both_on_one else settings.client_cpu
    connections = options["connections"]

    def run(subject, amount, warm_up):
        with programs.Server(subject.command, server_cpu, subject.environment) as server:
            given = {**options, "round-trips": amount, "warm-up": warm_up}
            return programs.run_load(tools.client, server, client_cpu, given, settings.timeout)

    def calibrate(subject):
        if settings.round_trips:
            return settings.round_trips
        probe = max(2 * connections, 1000)
        figures = run(subject, probe, connections)
        amount = int(settings.seconds * 1e9 / (figures["wall_ns"] / probe))
        return max(amount // connections, 2) * connections

    def measure(subject, amount):
        warm_up = max(amount // 10 // connections, 1) * connections
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
        tools.chosen(subjects),
        measure,
        main,
        calibrate,
        settings.seconds * 1.2 + 0.1,
        {**options, "processors": 1 if both_on_one else 2},
    )


def buffer_for(size):
    """The same for every server: a page, or the message if that is larger."""
    return max(4096, size)


def async_tcp_echo(tools):
    settings = tools.settings
    for size in settings.numbers("sizes"):
        for connections in settings.numbers("connections"):
            yield load_case(
                tools,
                "async_tcp_echo",
                f"{size}B_{connections}",
                tools.echo(buffer_for(size)),
                {"size": size, "connections": connections},
                ["server_cpu_ns", "wall_ns"],
            )


SCENARIOS = {
    "async_tcp_echo": async_tcp_echo,
}
