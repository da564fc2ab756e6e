"""Pieces of a loop, without a server: datagrams, waits, tasks, timers."""

import json
import re

from .. import lines, programs
from ..programs import Failed
from .cases import Case


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
            libevent="it has no datagram calls: that would be bare sendto(2) and recvfrom(2)",
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

# The suffix that Google Benchmark adds to the name if all threads of the process count.
MICRO_SUFFIXES = {"post_across_threads": "/process_time/real_time", "resolve_numeric": "/process_time"}


def micro(tools):
    """Pieces of a loop with Google Benchmark; each subject in its own process, alternating."""
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
            # Threads spin; a million timers are created again for each attempt to find the number of rounds.
            seconds=0.1 + 2.5 * settings.benchmark_min_time + (2.5 if "1000000" in operation else 0.0),
        )
