#!/usr/bin/env python3
"""A hostile crowd against every example that listens and every idiom of the pages, on both backends.

crowd.py --examples build/release/examples --idioms build/release/tests/crowd/crowd_idioms

Each case is one server, one backend, and many raw clients with one kind of bad manners (manners.py).
It asserts:
- Victims, one connected before the crowd and one after it, are served within --patience seconds.
- The server survives.
- Clients that do not complete the TLS handshake are disconnected, whatever they send.
- Each client costs no more memory and descriptors than targets.py states. Both are back near the start
  when the crowd has left.
- The server sleeps while the crowd is idle: it uses less than a fifth of a processor.
- SIGTERM ends the server, with clients connected, within a bound and with status 0.
These are bounds on liveness, far above normal values: no figure of speed is asserted.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import manners
import targets
from engine import Engine, FarEnd, Listener, Victim, tcp_memory_is_short
from process import Failed, Server
from secure import present

BUSY = 0.2  # of a processor
SPARE_DESCRIPTORS = 24
NEAR_THE_START = 8 * targets.MIB
QUIET = 0.3  # seconds without progress
CONNECTING = 200  # at one time, fewer than any backlog
_numbers = itertools.count()
FEW = 20  # clients that are connected when the server is told to end


class Crowd:
    """`size` clients of one manner; clients that end on their own are replaced."""

    def __init__(self, case, size):
        self._engine, self._address, self._server = case.engine, case.address, case.server
        self._target, self._manner = case.target, case.manner
        self._left = size * (1 + case.manner.again)
        self._size = size
        self.members = []
        self.peak = 0  # bytes of the server's memory
        self.ended_by_server = 0
        self.tick(0.0)

    def tick(self, _now):
        here = []
        for each in self.members:
            if not each.closed:
                here.append(each)
            elif each.ended:
                self.ended_by_server += 1
                self._left = max(0, self._left - self._manner.again)
        self.members = here
        connecting = sum(not each.connected for each in here)
        while self._left > 0 and len(self.members) < self._size and connecting < CONNECTING:
            self.members.append(self._manner(self._engine, self._address, self._target))
            self._left -= 1
            connecting += 1

    def arrive(self, seconds):
        """Runs until all of them have arrived; returns whether they were idle within `seconds`."""
        end = time.monotonic() + seconds
        quiet_since = None
        while time.monotonic() < end:
            before = self._engine.moved
            self._engine.run(0.1)
            self.tick(0.0)
            self.peak = max(self.peak, self._server.resident())
            here = self._left == 0 and all(each.connected for each in self.members)
            # They all tick at the same time, once a second.
            allowed = 4 * self._size if self._manner.trickles else 0
            if not here or self._engine.moved - before > allowed:
                quiet_since = None
            elif quiet_since is None:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= QUIET:
                return True
        return False

    def leave(self):
        for each in self.members:
            each.close()
        self.members = []
        self._engine.close_bad_far_ends()


class Case:
    """One server, one backend, one manner."""

    def __init__(self, options, target, backend, manner):
        self.options, self.target, self.backend, self.manner = options, target, backend, manner
        self.file, self.directory = options.file, options.directory
        self.certificates = options.certificates
        self.socket = os.path.join(options.directory, f"socket.{os.getpid()}.{next(_numbers)}")
        self.far_end = ""
        self.problems = []
        self.figures = {}

    def run(self):
        with contextlib.ExitStack() as stack:
            self.engine = Engine()
            stack.callback(self.engine.close)
            if self.target.proxy or "page:" in self.target.name:
                self.far_end = "%s:%d" % Listener(self.engine, FarEnd).address
            self.server = Server(self.target.command(self))
            stack.callback(self.server.kill)
            try:
                self._play()
            except Failed as problem:
                self.problems.append(str(problem))
        return self

    def _play(self):
        target = self.target
        self.address = self.server.announced(target.announces, self.options.patience) or self.socket
        old = self._victim()
        self._wait(target.protocol.prepare(old) if old else None, "the first victim is served")
        self._warm_up()
        memory, descriptors = self.server.resident(), self.server.descriptors()
        size = self.options.clients
        target.budget = self._budget

        crowd, arrival = Crowd(self, size), time.monotonic()
        still = crowd.arrive(self.options.seconds)
        self.server.must_live("under the crowd")
        self._check_victims(old)
        self._check(self.server.descriptors() - descriptors, target.descriptors * size + SPARE_DESCRIPTORS,
                    "descriptors", "under the crowd")
        peak = max(crowd.peak, self.server.resident())
        if not self.options.no_memory:
            self._check((peak - memory) // targets.KIB, (target.memory * size + target.base_memory) // targets.KIB,
                        "KiB of memory", "under the crowd")
        if still:  # otherwise the server has work
            self._check_sleep("while the crowd is idle")
        if self._are_shown_out:
            self._wait(lambda: self.server.descriptors() <= descriptors + SPARE_DESCRIPTORS,
                       "idle clients are disconnected", extra=target.handshake, problem_only=True)
            self.figures["gone"] = time.monotonic() - arrival
        crowd.leave()
        self._wait(lambda: self.server.descriptors() <= descriptors + SPARE_DESCRIPTORS,
                   "the descriptors are closed", problem_only=True)
        self._check_sleep("after the crowd has left")
        self._check_memory(memory, size)

        few = Crowd(self, FEW)
        few.arrive(1.0)
        self.server.must_live("before SIGTERM")
        self.server.terminate()
        self._wait(lambda: self.server.status() is not None, "SIGTERM ends it", extra=target.grace)
        if self.server.exit_code() != 0:
            raise Failed(f"SIGTERM ends it with {self.server.status()} {self.server.last_words()}")

    @property
    def _are_shown_out(self):
        """Whether the server has to disconnect the crowd, which stays."""
        idle = self.manner in (manners.NeverReads, manners.Silent, manners.Garbage)
        return self.target.handshake > 0 or self.target.shows_out and idle

    @property
    def _budget(self):
        most = self.target.crowd_budget
        return max(1100, most // self.options.clients) if most else self.options.budgets[self.target.name]

    def _victim(self):
        if self.target.datagram:
            return DatagramVictim(self.engine, self.address)
        return Victim(self.engine, self.address, self.target.keep_alive, secure=bool(self.target.secure))

    def _warm_up(self):
        """The first connections allocate what later ones reuse."""
        for _ in range(3):
            each = self._victim()
            self._wait(lambda each=each: each.connected, "a client is accepted")
            each.close()
        self.engine.run(0.1)

    def _check_victims(self, old):
        new = self._victim()
        start = time.monotonic()
        while not self._served(old, new, start + self.options.patience - time.monotonic()):
            if time.monotonic() - start >= self.options.patience or not self.target.drops:
                short = " (the kernel has no memory left for TCP: fewer --clients or --jobs)" * tcp_memory_is_short()
                self.problems.append(f"not within {self.options.patience:.0f} s: victims are served "
                                     f"(the first {old}, the second {new}){short}")
                break
            # A victim that fell behind in a flood and was disconnected connects again.
            old = self._victim() if old.gone() else old
            new = self._victim() if new.gone() else new
            self._wait(self.target.protocol.prepare(old), "a victim connects again")
        self.figures["served"] = time.monotonic() - start
        self.server.must_live("while victims were served")
        new.close()

    def _served(self, old, new, seconds):
        done = self.target.protocol.check(old, new)
        return self.engine.run(seconds, lambda: done() or self.target.drops and (old.gone() or new.gone()) or
                               self.server.status() is not None) and done()

    def _check_memory(self, before, size):
        """The memory is freed, or kept for later clients: then it is enough for a second crowd."""
        end = time.monotonic() + 1.0
        while self.server.resident() > before + NEAR_THE_START and time.monotonic() < end:
            self.engine.run(0.1)
        self.figures["kept"] = (self.server.resident() - before) // targets.KIB
        if self.server.resident() <= before + NEAR_THE_START or self.options.no_memory:
            return
        second = Crowd(self, size)
        second.arrive(self.options.seconds)
        self.server.must_live("under a second crowd")
        self._check((max(second.peak, self.server.resident()) - before) // targets.KIB,
                    (self.target.memory * size + self.target.base_memory) // targets.KIB, "KiB of memory",
                    "under a second crowd")
        second.leave()

    def _check_sleep(self, when):
        """A server that still has work finishes some time; one that spins never does."""
        busy = 1.0
        for _ in range(5):
            start, used = time.monotonic(), self.server.processor_seconds()
            self.engine.run(1.0)
            busy = min(busy, (self.server.processor_seconds() - used) / (time.monotonic() - start))
            if busy <= BUSY:
                break
        self._check(round(100 * busy), round(100 * BUSY), "% of a processor", when)

    def _check(self, is_, most, what, when):
        self.figures[what] = max(is_, self.figures.get(what, is_))
        if is_ > most:
            self.problems.append(f"{is_} {what} {when}, at most {most}")

    def _wait(self, until, what, extra=0.0, problem_only=False):
        """Runs until the condition holds; fails after --patience."""
        if until is None:
            return
        end = time.monotonic() + self.options.patience + extra
        while not self.engine.run(min(0.25, max(0.0, end - time.monotonic())), until):
            if "SIGTERM" not in what:
                self.server.must_live(f"before this: {what}")
            if time.monotonic() >= end:
                text = f"not within {self.options.patience + extra:.0f} s: {what}"
                if not problem_only:
                    raise Failed(text)
                self.problems.append(text)
                return


class DatagramVictim(Victim):
    """Sends requests until a reply arrives: datagrams are lost in a flood."""

    def __init__(self, engine, address):
        import socket
        self._to_send, self._then_end, self.keep_alive = b"", False, b""
        self.received, self.count, self.pauses_at, self.finished = bytearray(), 0, None, False
        self.engine, self.ended, self.closed, self.connected = engine, False, False, True
        self._wants = 1
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.connect(address)
        engine.add(self, self._wants)

    def ask(self, data, then_end=False):
        self.keep_alive = data
        self._to_send = data
        self.want(5)

    def on_tick(self, now):
        if self.keep_alive and self.keep_alive not in self.received:
            self._to_send = self.keep_alive
            self.want(5)


def backend_is_offered(options, backend):
    ended = subprocess.run([os.path.join(options.examples, "backend_switch")], stdout=subprocess.PIPE, timeout=60,
                           universal_newlines=True, check=False)
    return f"{backend}: works" in ended.stdout


def raise_descriptor_limit(clients):
    """For a proxy, its clients and its far end are both in this process: two descriptors for each client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8 * clients + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        sys.exit(f"{clients} clients need {wanted} descriptors, and the limit is {hard}: "
                 f"raise it, or take at most --clients {(hard - 200) // 8}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--examples", required=True, help="the directory of the examples' programs")
    parser.add_argument("--certificates", help="the directory of the tests' certificates; without it, no TLS")
    parser.add_argument("--idioms", help="the program of the idioms; without it, only examples run")
    parser.add_argument("--clients", type=int,
                        help="clients of each crowd (default: 1100, more than the default pool has buffers)")
    parser.add_argument("--seconds", type=float, default=30, help="time limit of a crowd (default: %(default)s)")
    parser.add_argument("--patience", type=float, default=10, help="seconds that a victim waits (default: %(default)s)")
    parser.add_argument("--backend", action="append", choices=["epoll", "io_uring"])
    parser.add_argument("--manner", action="append", choices=sorted(manners.by_name()))
    parser.add_argument("--only", action="append", help="only this target, or those whose names begin like this")
    parser.add_argument("--short", action="store_true", help="a selection of cases, with 60 clients each")
    parser.add_argument("--jobs", type=int, default=1, help="cases that run at a time (default: %(default)s)")
    parser.add_argument("--no-memory", action="store_true", help="no bounds on memory, for sanitizers")
    parser.add_argument("--list", action="store_true", help="list the cases instead of running them")
    return parser.parse_args()


def cases(options):
    everything = targets.examples() + (targets.idioms() if options.idioms else [])
    if options.certificates:
        everything += targets.secure_examples()
        present(os.path.join(options.certificates, "client.pem"), os.path.join(options.certificates, "client.key"))
    if os.path.exists(os.path.join(options.examples, "http_hello")):
        everything += [each for each in targets.http_examples()
                       if os.path.exists(os.path.join(options.examples, each.program))]
        everything += targets.http_idioms() if options.idioms else []
    options.budgets = {each.name: each.budget for each in everything}
    short = set(targets.SHORT)
    for target in everything:
        if options.only and not any(target.name.startswith(each) for each in options.only):
            continue
        for manner in manners.DATAGRAM if target.datagram else manners.STREAM:
            name = manners.name_of(manner)
            if not manner.fits(target) or (options.manner and name not in options.manner):
                continue
            if options.short and (target.name, name) not in short:
                continue
            for backend in options.backends:
                yield options, target, backend, manner


def run_one(case):
    """Runs in a process of the pool; returns only what can be pickled."""
    start = time.monotonic()
    played = Case(*case).run()
    return played.problems, played.figures, time.monotonic() - start


def print_one(name, problems, figures, seconds):
    text = [f"victims {figures['served']:.2f} s" if "served" in figures else "victims -",
            f"{figures.get('descriptors', 0)} fds", f"{figures.get('KiB of memory', 0)} KiB",
            f"({figures.get('kept', 0)} kept)", f"{figures.get('% of a processor', '-')} % busy", f"{seconds:.0f} s"]
    if "gone" in figures:
        text.append(f"gone after {figures['gone']:.1f} s")
    print(f"{name} {'FAILED' if problems else 'ok':7} {', '.join(text)}", flush=True)
    for problem in problems:
        print(f"    {problem}", flush=True)


def run_all(options):
    chosen = list(cases(options))
    names = [f"{target.name:24} {manners.name_of(manner):26} {backend:9}" for _, target, backend, manner in chosen]
    if options.list:
        print("\n".join(names))
        return True
    if not chosen:
        print("no such case")
        return False
    print(f"{'target':24} {'manner':26} {'backend':9} {'result':7} figures", flush=True)
    failed, start = [], time.monotonic()
    with multiprocessing.Pool(options.jobs) as pool:
        for name, (problems, *figures) in zip(names, pool.imap(run_one, chosen)):
            print_one(name, problems, *figures)
            if problems:
                failed.append(f"  {name} {problems[0]}")
    print(f"\n{len(chosen)} cases of {options.clients} clients in {time.monotonic() - start:.0f} s, "
          f"{len(failed)} failed", *failed, sep="\n")
    return not failed


def main():
    options = parse()
    if options.clients is None:
        options.clients = 60 if options.short else 1100
    raise_descriptor_limit(options.clients)
    options.backends = []
    for backend in options.backend or ["epoll", "io_uring"]:
        if backend_is_offered(options, backend):
            options.backends.append(backend)
        elif backend in os.environ.get("SIMPLENET_REQUIRE_BACKENDS", ""):
            sys.exit(f"SIMPLENET_REQUIRE_BACKENDS names {backend}, which is unavailable")
        else:
            # In the format of GoogleTest, which scripts/test.sh collects.
            print(f"crowd: Skipped\n{backend}: not offered by this kernel, sandbox or build")
    if not options.backends:
        sys.exit(77)
    options.directory = tempfile.mkdtemp(prefix="simplenet-crowd.")
    try:
        options.file = os.path.join(options.directory, "file")
        with open(options.file, "wb") as file:
            file.write(os.urandom(targets.FILE_SIZE))
        good = run_all(options)
    finally:
        shutil.rmtree(options.directory)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
