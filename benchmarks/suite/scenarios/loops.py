"""Servers on several loops: what they cost beside one loop and Boost.Asio, and how even their loads are."""

from .. import lines, programs
from .cases import Case, buffer_for, load_case

BACKENDS = ("epoll", "io_uring")
MEASURES = ["server_cpu_ns", "wall_ns"]


def servers(tools, buffer, pinned, read_mode="read_some"):
    """Ours and Asio's servers on several threads; `pinned`: each thread on a processor of its own."""
    loops = tools.settings.loops
    common = ["--port", 0, "--stay", 1, "--buffer", buffer]
    pin = ("--pin", 1) if pinned else ()

    def own(name, backend, *arguments, ours=True):
        return tools.subject(
            name, "echo_server", *common, "--read-mode", read_mode, "--backend", backend, *arguments, ours=ours, backend=backend
        )

    def asio(name, *arguments):
        return tools.subject(name, "asio_server", *common, *arguments, needs="libboost-dev 1.81 (Boost.Asio)")

    several = [own(f"ours_{each}", each, "--loops", loops, *pin) for each in BACKENDS]
    steered = [own(f"ours_{each}_steered", each, "--loops", loops, *pin, "--steer", 1) for each in BACKENDS]
    # Not "ours", because the others are compared with them.
    one = [own(f"one_loop_{each}", each, "--loops", 1, *pin, ours=False) for each in BACKENDS]
    theirs = [asio("asio_threads", "--loops", loops, *pin), asio("asio_shared", "--shared", loops)]
    return several, steered, one, theirs


def many_loops(tools):
    """An echo server on several loops beside one loop, and beside Boost.Asio on as many threads.

    Servers and clients use all processors; each thread of a client and each loop has its own.
    """
    several, steered, one, theirs = servers(tools, 4096, pinned=True)
    for connections in tools.settings.numbers("loops_connections"):
        options = {"size": 64, "connections": connections, "threads": tools.settings.loops}
        subjects = several + steered + one + theirs
        yield load_case(
            tools, "many_loops", f"64B_{connections}", subjects, options, MEASURES, everywhere=True, quick=None
        )


def callbacks_echo(tools):
    """A callbacks::server beside a tcp_server whose handler is a coroutine, on one loop."""
    for size, connections in ((64, 1), (64, 100), (16384, 100)):
        arguments = ["--port", 0, "--stay", 1, "--loops", 1, "--buffer", buffer_for(size)]
        subjects = []
        for backend in BACKENDS:
            common = ["echo_server", *arguments, "--backend", backend, "--style"]
            subjects.append(tools.subject(f"ours_{backend}", *common, "callbacks", ours=True, backend=backend))
            subjects.append(tools.subject(f"coroutines_{backend}", *common, "coroutines", backend=backend))
        options = {"size": size, "connections": connections}
        yield load_case(
            tools, "callbacks_echo", f"{size}B_{connections}", subjects, options, MEASURES, quick="^coroutines"
        )


def many_loops_matrix(tools):
    """muduo's matrix, and 64 bytes on many connections, on several loops beside Boost.Asio.

    Ours use receive(), as the pages teach for servers with many connections.
    """
    settings = tools.settings
    cells = [
        (size, connections)
        for connections in settings.numbers("ping_pong_connections")
        for size in settings.numbers("ping_pong_sizes")
    ]
    cells += [(64, connections) for connections in settings.numbers("loops_matrix_connections")]
    for size, connections in cells:
        several, _, _, theirs = servers(tools, buffer_for(size), pinned=False, read_mode="receive")
        name = f"{size // 1024}KiB_{connections}" if size % 1024 == 0 else f"{size}B_{connections}"
        options = {"size": size, "connections": connections}
        yield load_case(tools, "many_loops_matrix", name, several + theirs, options, MEASURES, quick=None)


def loop_balance(tools):
    """The busiest of several loops, as a multiple of the mean number of connections.

    `ours` hand connections over; those named reuse_port leave them where the kernel put them.
    """
    settings = tools.settings
    repetitions = settings.balance_repetitions
    subjects = []
    for backend in BACKENDS:
        common = ["--backend", backend, "--connections", settings.balance_connections, "--repetitions", repetitions]
        more = {"ours": [], "reuse_port": ["--balance", "round_robin"], "single_acceptor": ["--accept", "single_acceptor"]}
        for name, arguments in more.items():
            subjects.append(
                tools.subject(
                    f"{name}_{backend}", "loop_balance", *common, *arguments, ours=name == "ours", backend=backend
                )
            )
    for way in ("steady", "storm", "churn"):
        for loops in settings.numbers("balance_loops"):

            def measure(subject, _, way=way, loops=loops):
                command = [*subject.command, "--loops", str(loops), "--way", way]
                return lines.numbers(programs.run_text(command, None, settings.timeout))

            yield Case(
                "loop_balance",
                f"{way}_{loops}",
                tools.kept(subjects),
                measure,
                ["busiest", "worst_busiest"],
                seconds=0.2 * repetitions,
                repeatable=True,
            )
