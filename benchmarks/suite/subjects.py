"""The programs that are measured: our servers and all others, with the reason if one cannot run."""

import dataclasses
import os
import re
import shutil
import sys

CONTROL = "control"


@dataclasses.dataclass
class Subject:
    name: str
    command: list = None
    ours: bool = False
    missing: str = ""  # why it cannot run
    backend: str = "epoll"
    environment: dict = None
    twin: str = ""  # of a control: the subject that it repeats


class Tools:
    """Finds the programs of a build."""

    def __init__(self, build, root, settings):
        self.build = build
        self.programs = os.path.join(build, "benchmarks")
        self.root = root
        self.settings = settings
        self.pattern = re.compile(settings.subjects)
        self.client = self.path("load_client")

    def path(self, program):
        return os.path.join(self.programs, program)

    def subject(self, name, program, *arguments, ours=False, backend="epoll", needs=""):
        """A program of the build with its arguments; `needs` names the package that provides it."""
        path = program if os.path.isabs(program) else self.path(program)
        command = [path, *map(str, arguments)]
        found = Subject(name, command, ours, backend=backend)
        if not os.access(path, os.X_OK):
            found.missing = f"{os.path.basename(program)} was not built"
            if needs:
                found.missing += f": install {needs}"
        elif backend == "io_uring" and not self.has_io_uring():
            found.missing = "this kernel or sandbox refuses io_uring"
        return found

    def asio(self, name, program, *arguments, backend="epoll", needs=()):
        """Asio's counterpart of a program of ours; it exists if Boost was installed when the program was
        built."""
        found = self.subject(name, program, *arguments, backend=backend, needs=" and ".join(needs))
        twin = "asio_uring_server" if backend == "io_uring" else "asio_server"
        if not found.missing and not os.access(self.path(twin), os.X_OK):
            found.missing = f"{program} has no Boost.Asio" + (" on io_uring" if backend == "io_uring" else "")
            found.missing += ": install libboost-dev 1.81" + (" and liburing-dev" if backend == "io_uring" else "")
        return found

    def without(self, **reasons):
        """Subjects that a scenario cannot have, by name, with the reason."""
        return [Subject(name, [], missing=reason) for name, reason in reasons.items()]

    def has_io_uring(self):
        try:
            with open("/proc/sys/kernel/io_uring_disabled") as file:
                disabled = int(file.read())
            return disabled == 0 or (disabled == 1 and os.geteuid() == 0)
        except (OSError, ValueError):
            return True  # older than the sysctl: the run itself will show

    def kept(self, subjects, quick=None):
        """The subjects selected by PERF_SUBJECTS; in quick mode only ours and those that match `quick`."""
        few = re.compile(quick) if quick and self.settings.mode == "quick" else None
        return [
            each
            for each in subjects
            if self.pattern.search(each.name) and (few is None or each.ours or few.search(each.name))
        ]

    def chosen(self, subjects, quick=None):
        """The result of kept(), with the A/A controls: our first subject of each backend again, at the other
        end."""
        kept = self.kept(subjects, quick)
        firsts = {}
        for each in kept:
            if each.ours and not each.missing:
                firsts.setdefault(each.backend, each)
        for first in firsts.values():
            name = f"{CONTROL}_{first.name.removeprefix('ours_')}"
            kept.append(dataclasses.replace(first, name=name, ours=False, twin=first.name))
        return kept

    # --- servers ---------------------------------------------------------------------------------

    def echo(self, buffer, asyncio=False, busy_poll=0):
        common = ["--port", 0, "--stay", 1, "--buffer", buffer]
        own = common + (["--busy-poll", busy_poll] if busy_poll else [])
        found = []
        for backend in ("epoll", "io_uring"):
            for mode in ("read_some", "receive"):
                arguments = [*own, "--backend", backend, "--read-mode", mode]
                found.append(
                    self.subject(
                        f"ours_{backend}_{mode}", "echo_server", *arguments, ours=True, backend=backend
                    )
                )
        boost = "libboost-dev 1.81 (Boost.Asio)"
        found += [
            self.subject("asio_epoll", "asio_server", *common, needs=boost),
            self.subject(
                "asio_io_uring",
                "asio_uring_server",
                *common,
                backend="io_uring",
                needs=f"{boost} and liburing-dev",
            ),
            self.subject("libuv", "libuv_server", *common, needs="libuv1-dev"),
            self.subject("libevent", "libevent_server", *common, needs="libevent-dev"),
            self.tokio(common),
            self.subject("bare_epoll", "bare_epoll_server", *common),
            self.subject(
                "bare_io_uring", "bare_uring_server", *common, backend="io_uring", needs="liburing-dev"
            ),
        ]
        if asyncio:
            script = os.path.join(self.root, "benchmarks", "asyncio_server.py")
            found.append(Subject("asyncio", [sys.executable, script, *map(str, common)]))
        return found

    def tokio(self, common, name="tokio_echo_server"):
        program = os.path.join(self.build, "tokio", "release", name)
        found = self.subject("tokio", program, *common)
        if found.missing:
            found.missing = (
                "cargo could not build benchmarks/tokio"
                if shutil.which("cargo")
                else "cargo is not installed"
            )
        return found

    def stream(self, mode, *arguments, more=False):
        """Ours and Boost.Asio, for the modes that are not echo; `more` adds the others."""
        common = ["--port", 0, "--stay", 1, "--mode", mode, *arguments]
        found = [
            self.subject(
                f"ours_{backend}",
                "stream_server",
                *common,
                "--backend",
                backend,
                ours=True,
                backend=backend,
            )
            for backend in ("epoll", "io_uring")
        ]
        found += [
            self.subject("asio_epoll", "asio_server", *common, needs="libboost-dev"),
            self.subject(
                "asio_io_uring",
                "asio_uring_server",
                *common,
                backend="io_uring",
                needs="libboost-dev and liburing-dev",
            ),
        ]
        if more:
            found.append(self.tokio(common))
            found.append(self.subject("libuv", "libuv_server", *common, needs="libuv1-dev"))
            found.append(self.subject("libevent", "libevent_server", *common, needs="libevent-dev"))
        else:
            reason = "it queues writes by itself, so no queue has to be written by hand"
            found += self.without(libuv=reason, libevent=reason, tokio="its program here has no write queue")
        return found
