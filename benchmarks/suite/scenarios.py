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
    tools, scenario, name, subjects, options, main, both_on_one=True, extra=None, quick=FEW, seconds=None
):
    """The load client against each server; figures are for a round trip."""
    settings = tools.settings
    seconds = seconds or settings.seconds
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
        {**options, "processors": 1 if both_on_one else 2},
    )


def buffer_for(size):
    """The same for every server: a page, or the message if that is larger."""
    return max(4096, size)


def async_tcp_echo(tools):
    settings = tools.settings
    for size in settings.numbers("sizes"):
        for connections in settings.numbers("connections"):
            if size > 1024 and connections == 10 and not settings.changed.keys() & {"SIZES", "CONNECTIONS"}:
                continue  # no goal is about it, and 8 is beside it
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
    # A client that sleeps is most of the time that the server saves: its own waking up.
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
    """The matrix that muduo and evpp publish: MiB/s there and back, each side on a processor."""
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
    """The server writes blocks of 64 KiB as fast as the client reads; figures are for a MiB."""
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
    """Each message comes back 16 times through a write queue; figures are for a message in."""
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
    trips = settings.allocation_round_trips

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

    stream = [each for each in tools.stream("queue", "--copies", settings.copies) if each.command]
    loads = [
        ("echo_64B_100", tools.echo(4096), {"size": 64, "connections": 100}),
        ("churn_16", tools.echo(4096), {"size": 64, "connections": 16, "churn": 1}),
        ("queue_64B_100", stream, {"size": 64, "connections": 100, "copies": settings.copies}),
    ]
    for name, subjects, options in loads if settings.mode == "full" else loads[:1]:
        yield Case(
            "allocations",
            name,
            tools.kept(subjects, FEW),
            measure_with(options),
            ["allocations"],
            seconds=1.5,
            repeatable=True,
        )


def callgrind(tools, subject, connections):
    """Instructions of a round trip: the difference of a short and a long run."""
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
    """User-space instructions of the server for each 64-byte round trip, by callgrind.

    The difference of a short and a long run, both ends on one processor; repeats agree within 0.5 %.
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
            seconds=2 + settings.callgrind_round_trips / 1250,
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


def udp(tools):
    """Processor time of a 64-byte datagram, sent and received on one thread."""
    # bytes, in flight, rounds
    common = [64, tools.settings.udp_in_flight, 1]
    for way in ("one_by_one", "batch", "segments") if tools.settings.mode == "full" else ("batch",):
        subjects = [
            tools.subject(f"ours_{backend}", "udp_batch", *common, f"{backend}_{way}", ours=True, backend=backend)
            for backend in ("epoll", "io_uring")
        ]
        subjects.append(tools.asio("asio", "udp_batch", *common, "asio_one_by_one"))
        subjects.append(
            tools.asio(
                "asio_io_uring", "udp_batch_asio_uring", *common, "asio_one_by_one", backend="io_uring"
            )
        )
        subjects.append(tools.tokio(["udp", 64, tools.settings.udp_in_flight], "tokio_pieces"))
        subjects.append(
            tools.subject("libuv", "libuv_datagrams", 64, tools.settings.udp_in_flight, needs="libuv1-dev")
        )
        subjects += tools.without(
            libevent="it has no datagrams of its own: that would be bare sendto(2) and recvfrom(2)",
        )

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
    found.append(tools.asio("asio_epoll", "loop_waits", *command("asio", "epoll")))
    return found + [
        tools.asio(
            "asio_io_uring", "loop_waits_asio_uring", *command("asio", "io_uring"), backend="io_uring"
        )
    ]


def idle_wait(tools):
    """Processor time of a loop that sleeps 100 us, wakes up, and has nothing to do."""
    count = tools.settings.idle_waits

    def measure(subject, _):
        said = programs.run_text(
            [*subject.command, "--what", "idle_wait", "--count", str(count)],
            tools.settings.server_cpu,
            tools.settings.timeout,
        )
        return {"cpu_ns": lines.numbers(said)["cpu_ns"]}

    subjects = waiters(tools) + tools.without(
        tokio="its timers count milliseconds",
        libuv="its timers count milliseconds",
    )
    subjects.append(tools.subject("libevent", "libevent_waits", needs="libevent-dev"))
    subjects.append(tools.subject("bare_epoll", "loop_waits", "--library", "bare"))
    yield Case("idle_wait", "100us", tools.chosen(subjects), measure, ["cpu_ns"], seconds=count * 2e-4)


def strace_counts(tools, subject, options, trips):
    """{call: times} of a server and its threads while it serves, by `strace -c`."""
    settings = tools.settings
    with tempfile.NamedTemporaryFile("r") as file:
        # -D: the server stays our child, and strace is its grandchild; it ends with the server.
        command = ["strace", "-D", "-f", "-c", "-o", file.name, *subject.command]
        with programs.Server(command, settings.server_cpu) as server:
            given = {**options, "round-trips": trips}
            programs.run_load(tools.client, server, settings.server_cpu, given, settings.timeout)
            time.sleep(0.05)  # the server sees the ends
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
    """System calls of a server for each round trip, and which: the difference of a short and a long run."""
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
        seconds=1,
        repeatable=True,
    )


MICRO = (
    "coroutine_call",
    "spawn_join",
    "yield",
    "when_all_100",
    "channel",
    "timer_arm_cancel/1",
    "timer_arm_cancel/100000",
    "timer_arm_cancel/1000000",
    "timer_outlives_turns/1",
    "timer_outlives_turns/100000",
    "timer_arm_expire/1",
    "timer_arm_expire/100000",
    "post_same_thread/64",
    "post_across_threads/1",
    "post_across_threads/1000",
    "resolve_numeric",
)
MICRO_QUICK = ("coroutine_call", "spawn_join", "yield", "channel", "timer_arm_cancel/100000")

# What Google Benchmark adds to the name, where all threads of the process count.
MICRO_SUFFIXES = {"post_across_threads": "/process_time/real_time", "resolve_numeric": "/process_time"}


def micro(tools):
    """Pieces of a loop by Google Benchmark; each subject in a process of its own, in turns."""
    settings = tools.settings
    needs = "libbenchmark-dev"
    for operation in MICRO if settings.mode == "full" or settings.micro else MICRO_QUICK:
        if not re.search(settings.micro, operation):
            continue
        suffix = MICRO_SUFFIXES.get(operation.split("/")[0], "")
        subjects = [
            tools.subject("ours_epoll", "micro", "ours_epoll", ours=True, needs=needs),
            tools.subject(
                "ours_io_uring", "micro", "ours_io_uring", ours=True, backend="io_uring", needs=needs
            ),
            tools.asio("asio", "micro", "asio", needs=[needs]),
            tools.asio(
                "asio_io_uring", "micro_asio_uring", "asio_io_uring", backend="io_uring", needs=[needs]
            ),
        ]
        if operation.startswith("timer_arm_expire"):
            subjects += tools.without(tokio="its timers count milliseconds")
        else:
            subjects.append(tools.tokio(["tokio"], "tokio_pieces"))
        subjects += tools.without(
            libuv="it has callbacks, not tasks and channels",
            libevent="it has callbacks, not tasks and channels",
        )

        def measure(subject, _, operation=operation, suffix=suffix):
            program, prefix = subject.command
            said = programs.run_text(
                [
                    program,
                    f"--benchmark_filter=^{prefix}/{operation}{suffix}$",
                    f"--benchmark_min_time={settings.benchmark_min_time}",
                    "--benchmark_format=json",
                ],
                # Two threads that wait for each other need two processors.
                None if "real_time" in suffix else settings.server_cpu,
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
            # Threads spin; a million timers are made anew for each attempt at the number of rounds.
            seconds=0.1 + 2.5 * settings.benchmark_min_time + (2.5 if "1000000" in operation else 0.0),
        )


def ab_matrix(tools):
    """`ab -k` against echo servers: its request comes back and passes for an answer."""
    settings = tools.settings
    if not programs.have("ab"):
        raise Failed("ab is not installed (apache2-utils)")
    def measure(subject, _):
        with programs.Server(subject.command, settings.server_cpu) as server:
            before = programs.processor_ns(server.pid)
            said = programs.run_text(
                ["ab", "-q", "-k", "-r", "-c", str(settings.ab_connections),
                 "-n", str(settings.ab_requests), f"http://127.0.0.1:{server.port}/"],
                settings.client_cpu,
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
    "system_calls": system_calls,
    "post_system_calls": post_system_calls,
    "memory_per_connection": memory_per_connection,
    "allocations": count_allocations,
    "instructions": instructions,
    "instructions_io_uring": instructions_io_uring,
}
