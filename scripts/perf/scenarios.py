"""The scenarios: each yields cases, and a case knows how to measure one subject once."""

import dataclasses
import json
import os
import re
import resource
import sys
import tempfile
import time
import typing

from . import lines, programs
from .programs import Failed
from .subjects import Subject

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
    "adds": "instructions",
    "allocations": "allocations",
    "system_calls": "calls",
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


# In quick mode the less central scenarios have fewer subjects.
FEW = "^(asio|asio_epoll|tokio|bare|bare_epoll|asyncio)$"


def load_case(
    tools, scenario, name, subjects, options, main, both_on_one=True, extra=None, quick=FEW
):
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
        warm_up = max(amount // 4 // connections, 1) * connections
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
        settings.seconds * 1.3 + 0.15,
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
                quick=None,
            )


def connection_churn(tools):
    """Connect, one round trip, reset: again and again on so many at once."""
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
    """All connect at once, have one round trip each and go; figures are for a connection."""
    connections = 100 if tools.settings.mode == "quick" else 1000
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
    for connections in [1, 100] if tools.settings.mode == "full" else [100]:
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
    if (os.cpu_count() or 1) < 2:
        raise Failed("the machine has one processor")

    def rate(figures, amount):
        return {"round_trips_per_s": amount * 1e9 / figures["wall_ns"]}

    main = ["round_trips_per_s", "p50_ns", "server_cpu_ns"]
    for connections in [1, 100] if settings.mode == "full" else [1]:
        options = {"size": 64, "connections": connections}
        yield load_case(
            tools, "two_cores", f"sleeping_{connections}", tools.echo(4096), options, main, False, rate
        )
        busy = tools.echo(4096, busy_poll=settings.busy_poll_us)
        yield load_case(
            tools, "two_cores", f"busy_poll_{connections}", busy, options, main, False, rate
        )
        # A client that sleeps is most of the time that the server saves: its own waking up.
        awake = {**options, "spin": 1}
        yield load_case(
            tools, "two_cores", f"busy_poll_awake_client_{connections}", busy, awake, main, False, rate
        )


def ping_pong_matrix(tools):
    """The matrix that muduo and evpp publish: MiB/s there and back, each side on a processor."""
    full = tools.settings.mode == "full"
    for connections in [1, 10, 100] if full else [10]:
        for size in [1024, 4096, 16384] if full else [4096]:

            def rate(figures, amount, size=size):
                return {"mib_per_s": amount * size / 2**20 * 1e9 / figures["wall_ns"]}

            yield load_case(
                tools,
                "ping_pong_matrix",
                f"{size // 1024}KiB_{connections}",
                tools.echo(16384, asyncio=True),
                {"size": size, "connections": connections},
                ["mib_per_s"],
                (os.cpu_count() or 1) < 2,
                rate,
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
    """The server writes blocks of 64 KiB as fast as the client reads; figures are for a MiB."""
    settings = tools.settings
    amount = settings.stream_mib
    for connections in [1, 8] if settings.mode == "full" else [1]:
        subjects = tools.chosen(tools.stream("source", "--block", 65536, tokio=True))

        def measure(subject, _, connections=connections):
            with programs.Server(subject.command, settings.server_cpu) as server:
                options = {
                    "size": 65536,
                    "connections": connections,
                    "drain": amount * 2**20,
                    "warm-up": 8 * 2**20,
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
            f"64KiB_{connections}",
            subjects,
            measure,
            ["server_cpu_us_per_mib", "mib_per_s"],
            seconds=0.2 + amount / 2000,
            parameters={"mib": amount, "connections": connections},
        )


def queued_writer(tools):
    """Each message comes back 16 times through a write queue; figures are for a message in."""
    copies = 16
    for connections in [1, 100] if tools.settings.mode == "full" else [100]:
        yield load_case(
            tools,
            "queued_writer",
            f"64B_{connections}_x{copies}",
            tools.stream("queue", "--copies", copies),
            {"size": 64, "connections": connections, "copies": copies},
            ["server_cpu_ns", "wall_ns"],
        )


def memory_per_connection(tools):
    """Growth of RssAnon for each connection that has echoed once and then says nothing."""
    settings = tools.settings
    count = settings.idle_connections
    need = count + 100

    def measure(subject, _):
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft < need:
            raise Failed(f"{need} descriptors needed, the limit is {soft}")
        with programs.Server(subject.command, settings.server_cpu) as server:
            before = programs.anonymous_bytes(server.pid)
            options = {"size": 64, "connections": count, "round-trips": count}
            with programs.HeldLoad(
                tools.client, server, settings.server_cpu, options, settings.timeout
            ):
                after = programs.anonymous_bytes(server.pid)
        return {"bytes_per_connection": (after - before) / count}

    yield Case(
        "memory_per_connection",
        str(count),
        tools.chosen(tools.echo(4096), FEW),
        measure,
        ["bytes_per_connection"],
        seconds=0.2 + count / 10000,
        repeats=2,
    )


def count_allocations(tools):
    """malloc(3) and its relatives for each round trip, once everything has been allocated once."""
    settings = tools.settings
    counter = tools.path("count_allocations.so")
    trips = 4000 if settings.mode == "quick" else 20000

    def measure_with(options):
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
                        programs.run_load(
                            tools.client,
                            server,
                            settings.server_cpu,
                            {**options, "round-trips": amount},
                            settings.timeout,
                        )
                        time.sleep(0.05)  # the server sees the ends; not part of the count's meaning
                        return count()

                    if load(trips) == 0:
                        raise Failed("the counter saw nothing: not glibc, or linked statically")
                    # The second has all of the first and `trips` more round trips.
                    one = -count() + load(trips)
                    two = -count() + load(2 * trips)
            return {"allocations": max(two - one, 0) / trips}

        return measure

    loads = [
        ("echo_64B_100", {"size": 64, "connections": 100}),
        ("churn_16", {"size": 64, "connections": 16, "churn": 1}),
    ]
    for name, options in loads if settings.mode == "full" else loads[:1]:
        yield Case(
            "allocations",
            name,
            tools.kept(tools.echo(4096), FEW),
            measure_with(options),
            ["allocations"],
            seconds=1.5,
            repeatable=True,
        )


def callgrind(tools, subject, connections):
    """Instructions of a round trip: the difference of a short and a long run."""
    settings = tools.settings
    trips = 5000

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
    """User-space instructions of the server for each 64-byte round trip, by callgrind.

    The difference of a short and a long run, both ends on one processor; repeats agree within 0.1 %.
    valgrind cannot run io_uring: scripts/perf_check.sh steps through those.
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
            seconds=6,
            repeatable=True,
        )


def instructions_io_uring(tools):
    """The same on io_uring, where the server is stepped through (scripts/perf_check.sh)."""
    settings = tools.settings
    if settings.mode == "quick":
        return
    subject = Subject("ours", [os.path.join(tools.root, "scripts", "perf_check.sh")], ours=True)

    for case in ("1", "100", "receive-1", "receive-100", "limit-1", "limit-100"):

        def measure(subject, _, case=case):
            said = programs.run_text(
                [*subject.command, "instructions", "--build", tools.build, "--case", f"^io_uring-{case}$"],
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


def udp(tools):
    """Processor time of a 64-byte datagram, sent and received on one thread."""
    program = tools.path("udp_batch")
    for way in ("one_by_one", "batch", "segments"):

        def command(name):
            return [program, "64", "64", "1", name]

        subjects = [
            Subject(f"ours_{backend}", command(f"{backend}_{way}"), True, backend=backend)
            for backend in ("epoll", "io_uring")
        ]
        subjects.append(Subject("asio", command("asio_one_by_one")))

        def measure(subject, _):
            said = programs.run_text(subject.command, tools.settings.server_cpu, tools.settings.timeout)
            found = re.search(r"(\d+) ns a datagram", said)
            if not found:
                raise Failed(f"udp_batch said: {said.strip()[-100:]}")
            return {"cpu_ns": float(found.group(1))}

        yield Case("udp", f"64B_{way}", tools.chosen(subjects), measure, ["cpu_ns"], seconds=0.3)


def waiters(tools):
    def command(library, backend):
        return ["--library", library, "--backend", backend]

    found = [
        tools.subject(
            f"ours_{backend}", "loop_waits", *command("ours", backend), ours=True, backend=backend
        )
        for backend in ("epoll", "io_uring")
    ]
    return found + [tools.subject("asio_epoll", "loop_waits", *command("asio", "epoll"))]


def idle_wait(tools):
    """Processor time of a loop that sleeps 100 us, wakes up, and has nothing to do."""
    count = 500 if tools.settings.mode == "quick" else 5000

    def measure(subject, _):
        said = programs.run_text(
            [*subject.command, "--what", "idle_wait", "--count", str(count)],
            tools.settings.server_cpu,
            tools.settings.timeout,
        )
        return {"cpu_ns": lines.numbers(said)["cpu_ns"]}

    yield Case("idle_wait", "100us", tools.chosen(waiters(tools)), measure, ["cpu_ns"], seconds=count * 2e-4)


def post_system_calls(tools):
    """System calls of a thread that posts to a loop which is awake, by strace; for each post."""
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
        seconds=3,
        repeatable=True,
    )


MICRO = (
    "coroutine_call",
    "spawn_join",
    "yield",
    "when_all_100",
    "channel",
    "timer_arm_cancel/1",
    "timer_arm_cancel/1000",
    "timer_arm_cancel/100000",
    "timer_arm_cancel/1000000",
    "timer_arm_expire/1",
    "timer_arm_expire/1000",
    "timer_arm_expire/100000",
    "timer_arm_expire/1000000",
    "post_same_thread/64",
    "post_across_threads/1",
    "post_across_threads/1000",
    "resolve_numeric",
)
MICRO_QUICK = ("coroutine_call", "spawn_join", "yield", "channel", "timer_arm_cancel/100000")


def micro(tools):
    """Pieces of a loop by Google Benchmark; each subject in a process of its own, in turns."""
    settings = tools.settings
    needs = "libbenchmark-dev"
    for operation in MICRO if settings.mode == "full" else MICRO_QUICK:
        threads = operation.startswith("post_across")
        subjects = [
            tools.subject("ours_epoll", "micro", "ours_epoll", ours=True, needs=needs),
            tools.subject(
                "ours_io_uring", "micro", "ours_io_uring", ours=True, backend="io_uring", needs=needs
            ),
            tools.subject("asio", "micro", "asio", needs=needs),
        ]

        def measure(subject, _, operation=operation, threads=threads):
            program, prefix = subject.command
            suffix = "/process_time/real_time" if threads else ""
            said = programs.run_text(
                [
                    program,
                    f"--benchmark_filter=^{prefix}/{operation}{suffix}$",
                    f"--benchmark_min_time={settings.benchmark_min_time}",
                    "--benchmark_format=json",
                ],
                None if threads else settings.server_cpu,
                settings.timeout,
            )
            found = json.loads(said)["benchmarks"] if said.strip() else []
            if len(found) != 1:
                raise Failed(f"micro has no {prefix}/{operation}")
            one = found[0]
            return {"cpu_ns": one["cpu_time"], "wall_ns": one["real_time"]}

        yield Case(
            "micro",
            operation.replace("/", "_"),
            tools.chosen(subjects),
            measure,
            ["cpu_ns", "wall_ns"],
            seconds=0.1 + 2.5 * settings.benchmark_min_time,
        )


def ab_matrix(tools):
    """`ab -k` against echo servers: its request comes back and passes for an answer."""
    settings = tools.settings
    if not programs.have("ab"):
        raise Failed("ab is not installed (apache2-utils)")
    both = (os.cpu_count() or 1) < 2

    def measure(subject, _):
        with programs.Server(subject.command, settings.server_cpu) as server:
            before = programs.processor_ns(server.pid)
            said = programs.run_text(
                ["ab", "-q", "-k", "-r", "-c", str(settings.ab_connections),
                 "-n", str(settings.ab_requests), f"http://127.0.0.1:{server.port}/"],
                settings.server_cpu if both else settings.client_cpu,
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

    yield Case(
        "ab_matrix",
        f"k_c{settings.ab_connections}",
        tools.chosen(tools.echo(4096, asyncio=True), FEW),
        measure,
        ["requests_per_s", "server_cpu_ns"],
        seconds=0.3 + settings.ab_requests / 40000,
        repeats=2 if settings.mode == "quick" else 0,
    )


SCENARIOS = {
    "async_tcp_echo": async_tcp_echo,
    "connection_churn": connection_churn,
    "idle_wait": idle_wait,
    "tcp_echo": tcp_echo,
    "pipelined_echo": pipelined_echo,
    "streaming": streaming,
    "queued_writer": queued_writer,
    "accept_storm": accept_storm,
    "two_cores": two_cores,
    "ping_pong_matrix": ping_pong_matrix,
    "ab_matrix": ab_matrix,
    "udp": udp,
    "micro": micro,
    "post_system_calls": post_system_calls,
    "memory_per_connection": memory_per_connection,
    "allocations": count_allocations,
    "instructions": instructions,
    "instructions_io_uring": instructions_io_uring,
}
