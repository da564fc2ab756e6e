"""Servers under load: time and latency per round trip, per connection, per MiB."""

import dataclasses
import os
import re
import tempfile

from .. import programs
from ..programs import Failed
from .cases import FEW, Case, buffer_for, load_case, web_server


def async_tcp_echo(tools):
    settings = tools.settings
    for size in settings.numbers("sizes"):
        for connections in settings.numbers("connections"):
            if size > 1024 and connections == 10 and not settings.changed.keys() & {"SIZES", "CONNECTIONS"}:
                continue  # no goal concerns it, and 8 is close to it
            yield load_case(
                tools,
                "async_tcp_echo",
                f"{size}B_{connections}",
                tools.echo(buffer_for(size)),
                {"size": size, "connections": connections},
                ["server_cpu_ns", "wall_ns"],
                quick=None,
            )


def connection_churn(tools):
    """Connect, one round trip, reset: repeatedly on that many connections at once."""
    for connections in tools.settings.numbers("churn_connections"):
        yield load_case(
            tools,
            "connection_churn",
            str(connections),
            tools.echo(4096),
            {"size": 64, "connections": connections, "churn": 1},
            ["server_cpu_ns", "wall_ns"],
        )


def accept_storm(tools):
    """All clients connect at once, make one round trip each and leave; figures are per connection."""
    for connections in tools.settings.numbers("storm_connections"):
        yield load_case(
            tools,
            "accept_storm",
            str(connections),
            tools.echo(4096),
            {"size": 64, "connections": connections, "storm": 1},
            ["server_cpu_ns", "wall_ns"],
        )


def pipelined_echo(tools):
    depth = tools.settings.pipeline
    for connections in tools.settings.numbers("pipeline_connections"):
        yield load_case(
            tools,
            "pipelined_echo",
            f"64B_{connections}_x{depth}",
            tools.echo(4096),
            {"size": 64, "connections": connections, "pipeline": depth},
            ["server_cpu_ns", "wall_ns"],
        )


def two_cores(tools):
    """Server and client on a processor each: rate and latency, with and without busy polling."""
    settings = tools.settings
    if settings.one_processor:
        raise Failed("server and client would be on one processor")

    def rate(figures, amount):
        return {"round_trips_per_s": amount * 1e9 / figures["wall_ns"]}

    sleeping = tools.echo(4096)
    busy = [
        dataclasses.replace(each, name=f"{each.name}_busy_poll")
        for each in tools.echo(4096, busy_poll=settings.busy_poll_us)
        if each.ours
    ]
    ours = [each for each in sleeping if each.ours]
    others = [each for each in sleeping if not each.ours]
    # With a sleeping client most of the saved time is lost to the client's own wake-up.
    clients = (("", ours + busy + others, {}), ("_awake_client", busy + others, {"spin": 1}))
    for connections in settings.numbers("two_cores_connections"):
        for name, subjects, more in clients:
            yield load_case(
                tools,
                "two_cores",
                f"64B_{connections}{name}",
                subjects,
                {"size": 64, "connections": connections, **more},
                ["round_trips_per_s", "p50_ns", "server_cpu_ns"],
                both_on_one=False,
                extra=rate,
            )


def ping_pong_matrix(tools):
    """The matrix that muduo and evpp publish: MiB/s in both directions, each side on a processor."""
    settings = tools.settings
    for connections in settings.numbers("ping_pong_connections"):
        for size in settings.numbers("ping_pong_sizes"):

            def rate(figures, amount, size=size):
                return {"mib_per_s": amount * size / 2**20 * 1e9 / figures["wall_ns"]}

            yield load_case(
                tools,
                "ping_pong_matrix",
                f"{size // 1024}KiB_{connections}" if size % 1024 == 0 else f"{size}B_{connections}",
                tools.echo(buffer_for(max(settings.numbers("ping_pong_sizes"))), asyncio=True),
                {"size": size, "connections": connections},
                ["mib_per_s"],
                settings.one_processor,
                rate,
                seconds=settings.ping_pong_seconds,
            )


def tcp_echo(tools):
    """The blocking layer: one connection, one thread."""
    for size in tools.settings.numbers("sizes"):
        common = ["--port", 0, "--buffer", buffer_for(size)]
        subjects = [
            tools.subject(name, "blocking_server", *common, "--library", name, ours=name == "ours")
            for name in ("ours", "asio", "bare")
        ]
        yield load_case(
            tools,
            "tcp_echo",
            f"{size}B",
            subjects,
            {"size": size, "connections": 1},
            ["server_cpu_ns", "wall_ns"],
        )


def streaming(tools):
    """The server writes blocks of 64 KiB as fast as the client reads; figures are per MiB."""
    settings = tools.settings
    amount, block = settings.stream_mib, settings.stream_block
    for connections in settings.numbers("stream_connections"):
        subjects = tools.chosen(tools.stream("source", "--block", block, more=True))

        def measure(subject, _, connections=connections):
            with programs.Server(subject.command, settings.server_cpu) as server:
                options = {
                    "size": 65536,
                    "connections": connections,
                    "drain": amount * 2**20,
                    "warm-up": settings.stream_warm_up_mib * 2**20,
                }
                figures = programs.run_load(
                    tools.client, server, settings.server_cpu, options, settings.timeout
                )
            return {
                "server_cpu_us_per_mib": figures["peer_cpu_ns"] / 1e3 / amount,
                "mib_per_s": amount * 1e9 / figures["wall_ns"],
            }

        yield Case(
            "streaming",
            f"{block // 1024}KiB_{connections}" if block % 1024 == 0 else f"{block}B_{connections}",
            subjects,
            measure,
            ["server_cpu_us_per_mib", "mib_per_s"],
            seconds=0.2 + (amount + settings.stream_warm_up_mib) / 2000,
            parameters={"mib": amount, "connections": connections, "block": block},
        )


def queued_writer(tools):
    """Each message comes back 16 times through a write queue; figures are per incoming message."""
    copies = tools.settings.copies
    for connections in tools.settings.numbers("queue_connections"):
        yield load_case(
            tools,
            "queued_writer",
            f"64B_{connections}_x{copies}",
            tools.stream("queue", "--copies", copies),
            {"size": 64, "connections": connections, "copies": copies},
            ["server_cpu_ns", "wall_ns"],
        )


def ab_load(settings, command, connections, client_cpu):
    """`ab -k` against a server of the suite once."""
    with programs.Server(command, settings.server_cpu) as server:
        before = programs.processor_ns(server.pid)
        said = programs.run_text(
            ["ab", "-q", "-k", "-r", "-c", str(connections),
             "-n", str(settings.ab_requests), f"http://127.0.0.1:{server.port}/"],
            client_cpu,
            settings.timeout,
        )  # fmt: skip
        spent = programs.processor_ns(server.pid) - before
    rate = re.search(r"^Requests per second:\s+([\d.]+)", said, re.M)
    failed = re.search(r"^Failed requests:\s+(\d+)", said, re.M)
    if not rate or not failed or int(failed.group(1)) > settings.ab_requests // 100:
        raise Failed(f"ab: {failed.group(0) if failed else said.strip()[-100:]}")
    return {
        "requests_per_s": float(rate.group(1)),
        "server_cpu_ns": spent / settings.ab_requests,
    }


def ab_matrix(tools):
    """`ab -k` against echo servers: the echoed request passes for an answer."""
    settings = tools.settings
    if not programs.have("ab"):
        raise Failed("ab is not installed (apache2-utils)")

    def measure(subject, _):
        return ab_load(settings, subject.command, settings.ab_connections, settings.client_cpu)

    yield Case(
        "ab_matrix",
        f"k_c{settings.ab_connections}",
        tools.chosen(tools.echo(4096, asyncio=True), FEW),
        measure,
        ["requests_per_s", "server_cpu_ns"],
        seconds=0.3 + settings.ab_requests / 40000,
        repeats=2 if settings.mode == "quick" else 0,
    )


def file_answers(tools):
    """`ab -k` asks for a small file: head and file sent as one beside both by themselves, and nginx."""
    settings = tools.settings
    if not programs.have("ab"):
        raise Failed("ab is not installed (apache2-utils)")
    size, connections = settings.answer_file, settings.answer_connections

    def own(way):
        return [each for each in tools.stream("file", "--file", size, "--answer", way) if each.ours]

    # Not "ours", because the others are compared with it.
    apart = [dataclasses.replace(each, name=f"apart_{each.backend}", ours=False) for each in own("apart")]
    nginx = web_server(tools, "nginx", "--file", size, "--place")

    def measure(subject, _):
        if subject.name != "nginx":
            return ab_load(settings, subject.command, connections, settings.server_cpu)
        with tempfile.TemporaryDirectory() as place:
            return ab_load(settings, [*subject.command, place], connections, settings.server_cpu)

    yield Case(
        "file_answers",
        f"{size}B_{connections}",
        tools.chosen([*own("joined"), *apart, nginx]),
        measure,
        ["server_cpu_ns"],
        seconds=0.3 + settings.ab_requests / 40000,
    )
