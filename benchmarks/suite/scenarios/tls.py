"""TLS servers beside asio::ssl: TLS 1.3 with AES-256-GCM and a key on P-256, made for the run."""

import functools
import os
import shutil
import tempfile

from .. import programs
from ..programs import Failed
from .cases import Case, load_case
from .counts import allocations_of, memory_of

MEASURES = ["server_cpu_ns", "wall_ns"]
BACKENDS = ("epoll", "io_uring")


@functools.cache
def certificate(tools):
    """The arguments of a server; its files end with the suite."""
    if not shutil.which("openssl"):
        raise Failed("openssl is not installed")
    tools.certificates = tempfile.TemporaryDirectory(prefix="simplenet-tls-")
    chain, key = (os.path.join(tools.certificates.name, name) for name in ("chain.pem", "key.pem"))
    programs.run_text(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", chain],
        None,
        tools.settings.timeout,
    )  # fmt: skip
    return ["--certificate", chain, "--key", key]


def servers(tools, *arguments, readable=False):
    """Ours, asio::ssl and OpenSSL alone; with `readable` also ours without a buffer of each connection."""
    common = ["--port", 0, "--stay", 1, *certificate(tools), *arguments]

    def own(name, backend, *more):
        return tools.subject(
            name, "tls_server", *common, "--backend", backend, *more, ours=True, backend=backend, needs="libssl-dev"
        )

    found = [own(f"ours_{each}", each) for each in BACKENDS]
    if readable:
        found += [own(f"ours_{each}_readable", each, "--read-mode", "readable") for each in BACKENDS]
    boost = "libboost-dev 1.81 (Boost.Asio), libssl-dev"
    uring = f"{boost} and liburing-dev"
    return found + [
        tools.subject("asio_epoll", "tls_asio_server", *common, needs=boost),
        tools.subject("asio_io_uring", "tls_asio_uring_server", *common, backend="io_uring", needs=uring),
        tools.subject("bare_epoll", "tls_bare_server", *common, needs="libssl-dev"),
    ]


def client_of(tools):
    return tools.path("tls_load_client")


def tls_echo(tools):
    for size in tools.settings.numbers("tls_sizes"):
        for connections in tools.settings.numbers("tls_connections"):
            yield load_case(
                tools,
                "tls_echo",
                f"{size}B_{connections}",
                servers(tools, "--buffer", max(4096, size)),
                {"size": size, "connections": connections},
                MEASURES,
                quick=None,
                client=client_of(tools),
            )


def moved(tools, scenario, name, subjects, options):
    """A case that moves data in one direction; figures are per MiB."""
    settings = tools.settings
    amount, warm_up = settings.tls_mib * 2**20, settings.stream_warm_up_mib * 2**20
    way = "push" if scenario == "tls_receive" else "drain"

    def measure(subject, _):
        with programs.Server(subject.command, settings.server_cpu) as server:
            given = {"connections": 1, way: amount, "warm-up": warm_up, **options}
            figures = programs.run_load(client_of(tools), server, settings.server_cpu, given, settings.timeout)
        return {
            "server_cpu_us_per_mib": figures["peer_cpu_ns"] / 1e3 / settings.tls_mib,
            "mib_per_s": settings.tls_mib * 1e9 / figures["wall_ns"],
        }

    return Case(
        scenario,
        name,
        tools.chosen(subjects),
        measure,
        ["server_cpu_us_per_mib", "mib_per_s"],
        seconds=0.2 + (settings.tls_mib + settings.stream_warm_up_mib) / 900,
        parameters={"mib": settings.tls_mib, **options},
    )


def tls_send(tools):
    """The server writes blocks as fast as the client reads."""
    for block in tools.settings.numbers("tls_blocks"):
        subjects = servers(tools, "--mode", "source", "--block", block)
        yield moved(tools, "tls_send", f"{block}B", subjects, {})


def tls_receive(tools):
    """The client writes blocks of 64 KiB as fast as the server reads."""
    size = tools.settings.stream_block
    subjects = servers(tools, "--mode", "sink", "--buffer", size)
    yield moved(tools, "tls_receive", f"{size}B", subjects, {"size": size})


def tls_handshakes(tools):
    """Connect, handshake, one round trip of 64 bytes, reset: repeatedly, on 16 connections at once."""
    for name, resume in (("full", 0), ("resumed", 1)):

        def check(figures, amount, resume=resume):
            if figures["resumed"] != resume * amount:
                raise Failed(f"{figures['resumed']:.0f} of {amount} connections resumed a session")
            return {}

        yield load_case(
            tools,
            "tls_handshakes",
            name,
            servers(tools, "--buffer", 4096),
            {"size": 64, "connections": 16, "churn": 1, "resume": resume},
            MEASURES,
            extra=check,
            quick=None,
            client=client_of(tools),
        )


def tls_idle_memory(tools):
    """Growth of RssAnon for each connection that has echoed and is then silent."""
    settings = tools.settings
    count = settings.tls_idle_connections
    subjects = tools.chosen(servers(tools, "--buffer", 4096, readable=True))
    # Handshakes at the same time would leave gaps in the heap, which belong to no connection.
    yield memory_of(settings, "tls_idle_memory", count, subjects, client_of(tools), {"one-by-one": 1})


def tls_allocations(tools):
    """malloc(3) and relatives per round trip; what OpenSSL allocates counts, too."""
    subjects = servers(tools, "--buffer", 4096)
    options = {"size": 64, "connections": 100}
    yield allocations_of(tools, "tls_allocations", "echo_64B_100", tools.kept(subjects), options, client_of(tools))


def tls_many_loops(tools):
    """Echo of 64 bytes on several loops beside one, and beside asio::ssl on as many threads, as many_loops."""
    loops = tools.settings.loops
    common = ["--port", 0, "--stay", 1, "--pin", 1, *certificate(tools)]

    def own(name, backend, loops, ours=True):
        arguments = [*common, "--backend", backend, "--loops", loops]
        return tools.subject(name, "tls_server", *arguments, ours=ours, backend=backend, needs="libssl-dev")

    subjects = [own(f"ours_{each}", each, loops) for each in BACKENDS]
    subjects += [own(f"one_loop_{each}", each, 1, ours=False) for each in BACKENDS]
    boost = "libboost-dev 1.81 (Boost.Asio), libssl-dev"
    subjects.append(tools.subject("asio_threads", "tls_asio_server", *common, "--loops", loops, needs=boost))
    for connections in tools.settings.numbers("loops_connections"):
        yield load_case(
            tools,
            "tls_many_loops",
            f"64B_{connections}",
            subjects,
            {"size": 64, "connections": connections, "threads": loops},
            MEASURES,
            everywhere=True,
            quick=None,
            client=client_of(tools),
        )
