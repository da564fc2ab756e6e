#!/usr/bin/env python3
"""Refuses every system call of the library in turn, to every example, on every backend.

refusals.py --examples build/release/examples --refuse build/release/tests/crowd/libcrowd_refuse.so

A sandbox (seccomp) answers EPERM, an old kernel ENOSYS. The example then either works by a fallback, or ends
with a status other than 0 and an error on standard error. A server may also close the connection that it cannot
serve. Calls that only make something faster have no visible effect at all. An example never hangs, never dies
by a signal, never spins, and never claims a false success.
"""

import argparse
import collections
import http.server
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402
from process import die_with_parent, Failed, Server  # noqa: E402
from targets import handshake, request  # noqa: E402

PATIENCE = 8.0  # seconds; a fallback takes milliseconds
WORKS, SAYS_SO, CLOSES = "works", "says so", "closes"

# Calls that are refused together: a function of the C library makes one of them, depending on architecture and
# version.
CALLS = ["accept4,accept", "bind", "connect", "epoll_create1", "epoll_ctl", "epoll_pwait2", "epoll_wait,epoll_pwait",
         "eventfd2", "fcntl", "getdents64", "getpeername", "getsockname", "getsockopt", "io_uring_setup",
         "io_uring_enter", "io_uring_register", "ioctl", "listen", "lstat,newfstatat,statx", "mmap", "munmap",
         "openat2", "pipe2", "poll,ppoll", "pread64", "read", "readlink,readlinkat", "recvfrom", "recvmmsg", "recvmsg",
         "sendfile", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "signalfd4", "socket", "socketpair", "splice", "clone,clone3", "unlink,unlinkat",
         # not in the seam: used by the C library, by the examples, and for threads and signals
         "brk", "clock_nanosleep", "close", "fstat", "futex", "getpid", "getrandom", "gettid", "inotify_add_watch",
         "inotify_init1", "madvise", "mprotect", "mremap", "openat", "prctl", "prlimit64", "readv", "rseq",
         "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigtimedwait", "rt_tgsigqueueinfo",
         "sched_getaffinity", "sched_yield", "set_robust_list", "sigaltstack", "tgkill", "uname", "write", "writev"]

# The seam's names for calls that have another name, or that are not the kernel's.
OTHER_NAMES = {"accept": "accept4", "epoll_create": "epoll_create1", "eventfd": "eventfd2", "freeaddrinfo": None,
               "fstatat": "newfstatat", "getaddrinfo": None, "getdents": "getdents64", "if_nametoindex": None,
               "pipe": "pipe2", "pread": "pread64", "recv": "recvfrom",
               "send": "sendto", "signalfd": "signalfd4", "thread": "clone", "uring_enable": "io_uring_register",
               "uring_enter": "io_uring_enter", "uring_register": "io_uring_register",
               "uring_setup": "io_uring_setup"}
SEAM = pathlib.Path(__file__).resolve().parent.parent.parent / "src" / "sys" / "seam.hpp"
# Calls that only make something faster, or that another call can replace: everything works without them.
DISPENSABLE = ["epoll_pwait2", "io_uring_setup", "io_uring_enter", "io_uring_register", "madvise", "openat2", "pipe2",
               "sched_getaffinity", "sched_yield", "sendfile", "splice"]
# Failures that no change of the library could prevent, and why.
ALLOWED = {
    "brk": "brk(2) has no errors, so the C library treats EPERM as the end of its heap",
    "futex": "the C library itself aborts when a lock cannot wait",
    "rseq": "the C library itself aborts when a thread cannot register",
    "write": "an error cannot be printed either",
    "writev": "an error cannot be printed either",
}
# The same for the servers of a tcp_server.
ALLOWED_TO_SERVERS = {
    "accept4,accept": "no error of accept(2) ends a tcp_server: it tries again every 10 ms",
}


# --- peers that are not ours ----------------------------------------------------------------------

def echo_server():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(stream):
        with stream:
            try:
                while data := stream.recv(65536):
                    stream.sendall(data)
            except OSError:
                pass

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def web_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


# --- examples -------------------------------------------------------------------------------------

Example = collections.namedtuple("Example", "name arguments ask answer backends",
                                 defaults=([None, "epoll", "io_uring"],))
REFUSAL = b"no such file"  # by descriptor_passing, in place of a reply


def exchange(port, question, answer):
    """Whether the reply arrives; False if the connection is ended instead."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as stream:
        return talk(stream, question, answer)


def talk(stream, question, answer):
    stream.settimeout(PATIENCE)
    end = b""  # of the bytes received
    try:
        stream.sendall(question)
        while answer not in end:
            some = stream.recv(65536)
            if not some or REFUSAL in some:
                return False
            end = end[-len(answer):] + some
    except socket.timeout:
        raise Failed("hangs: a client is neither served nor closed") from None
    except OSError:
        return False
    return True


SERVERS = [
    Example("echo_server", [], b"hello", b"hello"),
    Example("chat_server", [], b"hello\n", b"joined"),
    Example("line_chat", [], b"me\n", b"me joined"),
    Example("file_send", ["FILE"], b"GET / HTTP/1.1\r\n\r\n", b"end of the file"),
    # Long enough for splice(2), which is used only for large amounts.
    Example("port_forward", ["--to", "127.0.0.1:ECHO"], b"x" * (1 << 24) + b"end", b"end"),
    Example("graceful_shutdown", [], b"hello", b"hello"),
    Example("task_dump", [], b"what?", b"dump or block?"),
    Example("udp_echo", [], b"hello", b"hello"),
    Example("descriptor_passing", ["serve", "DIRECTORY", "SOCKET"], b"file\n", b"here it is"),
]
# If the build has HTTP.
HTTP_SERVERS = [
    Example("http_hello", [], request("GET /"), b"Hello, world!"),
    Example("http_stream", [], request("GET /events"), b"id: 1\n"),
    Example("http_upload", ["DIRECTORY"], request("PUT /upload", b"words"), b"HTTP/1.1 20"),
    Example("http_files", ["DIRECTORY"], request("GET /file"), b"end of the file"),
    Example("websocket_chat", [], handshake("/chat"), b"is here"),
]
CLIENTS = [
    Example("echo_client", ["127.0.0.1", "ECHO", "--round-trips", "10"], None, "10 round trips"),
    Example("http_get", ["localhost", "--port", "WEB"], None, "hello"),
    Example("parallel_fetch", ["localhost", "/a", "/b", "--port", "WEB"], None, "5 bytes"),
    Example("blocking_client", ["127.0.0.1", "WEB", "GET / HTTP/1.0\r\n\r\n"], None, "hello", [None]),
    Example("reconnecting_client", ["127.0.0.1", "ECHO", "--say", "bye", "--attempts", "3"], None, "bye"),
    Example("connect_with_timeout", ["127.0.0.1", "ECHO"], None, "connected to"),
    Example("backend_switch", [], None, "automatic: works", [None]),
    Example("producer_consumer", ["100"], None, "25 primes", [None]),
    Example("watch_files", ["WATCHED", "--events", "1"], None, " new"),
]


class Run:
    """One example, one call, one error, one backend."""

    def __init__(self, options, example, call, error, backend):
        self.options, self.example, self.call, self.error, self.backend = options, example, call, error, backend

    def verdict(self):
        self.port = free_port()
        self.directory = tempfile.mkdtemp(dir=self.options.directory)
        self.socket = os.path.join(self.directory, "socket")
        # A program whose read(2) fails takes gcov's counters for empty ones, and overwrites them with its own.
        environment = {"LD_PRELOAD": self.options.refuse, "GCOV_PREFIX": self.directory}
        if self.call:
            environment["CROWD_REFUSE"] = f"{self.error}:{self.call}"
        self.process = Server(self._command(), environment, die_with_parent)
        try:
            kind, text = self._serve() if self.example.ask is not None else self._wait_for_the_end()
        except Failed as problem:
            kind, text = "FAILED", str(problem)
        finally:
            self.process.kill()
            shutil.rmtree(self.directory, ignore_errors=True)
        return kind, text

    def _command(self):
        known = {"FILE": self.options.file, "DIRECTORY": self.options.shared, "SOCKET": self.socket,
                 "WATCHED": self.directory, "WEB": str(self.options.web), "ECHO": str(self.options.echo)}
        words = [known.get(word, word.replace(":ECHO", f":{self.options.echo}")) for word in self.example.arguments]
        if self.example.ask is not None and "SOCKET" not in self.example.arguments:
            words += ["--port", str(self.port)]
        if self.backend:
            words += ["--backend", self.backend]
        return [os.path.join(self.options.examples, self.example.name), *words]

    def _ended(self):
        """How it ended on its own, if that was allowed."""
        code = self.process.exit_code()
        if code is None:
            return None
        words = self.process.last_words()
        if code == 77:
            return "skipped", "no such call"
        if code < 0:
            raise Failed(f"died by {self.process.status()}: {words}")
        if code == 0:
            if self.example.ask is not None:
                raise Failed(f"ended with status 0 on its own: {words}")
            if self.example.answer not in self.process.output():
                raise Failed(f"claims a success: {self.process.output()[-100:]!r}")
            return WORKS, ""
        if not words and self.example.name == "backend_switch":
            words = " ".join(self.process.output().split())
        if not words and self.call not in ALLOWED:
            raise Failed(f"status {code} without a message")
        return SAYS_SO, f"status {code}: {words}"

    def _wait_for_the_end(self):
        end = time.monotonic() + PATIENCE
        at = 0
        while time.monotonic() < end:
            if ended := self._ended():
                return ended
            at += 1
            with open(os.path.join(self.directory, f"new{at}"), "w", encoding="ascii"):
                pass  # for watch_files
            time.sleep(0.02)
        raise Failed(f"hangs: still runs after {PATIENCE:.0f} s")

    def _serve(self):
        end = time.monotonic() + PATIENCE
        while not self._listens():
            if ended := self._ended():
                return ended
            if time.monotonic() > end:
                raise Failed("hangs: neither listens nor ends")
            time.sleep(0.01)
        served = self._is_served()
        if ended := self._settled():
            return ended
        self._must_sleep()
        return self._terminate(WORKS if served else CLOSES)

    def _listens(self):
        if self.example.name == "udp_echo":
            return True  # requests repeat until it replies
        kind, at = (socket.AF_UNIX, self.socket) if "SOCKET" in self.example.arguments else \
            (socket.AF_INET, ("127.0.0.1", self.port))
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(at) == 0

    def _is_served(self):
        try:
            if self.example.name == "udp_echo":
                return self._asked_by_datagrams()
            if "SOCKET" in self.example.arguments:
                with socket.socket(socket.AF_UNIX) as stream:
                    stream.settimeout(PATIENCE)
                    stream.connect(self.socket)
                    return talk(stream, self.example.ask, self.example.answer)
            if self.example.name == "port_forward":
                return self._asked_at_length()
            if "chat" in self.example.name:
                return self._asked_in_company()
            return exchange(self.port, self.example.ask, self.example.answer)
        except ConnectionError:
            return False
        except Failed:
            if self.process.exit_code() is not None:
                return False  # the end is checked
            raise

    def _asked_by_datagrams(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
            stream.connect(("127.0.0.1", self.port))
            stream.settimeout(0.1)
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end and self.process.exit_code() is None:
                try:
                    stream.send(self.example.ask)
                    if stream.recv(2048) == self.example.answer:
                        return True
                except socket.timeout:
                    pass
                except OSError:
                    time.sleep(0.02)  # not listening yet, or any more
        # A reply that cannot be sent is skipped by design: EPERM is also the error of a firewall.
        if self.process.exit_code() is not None or self.call == "sendmmsg":
            return False
        raise Failed("hangs: a datagram is never answered")

    def _asked_in_company(self):
        """A chat notices that it cannot write to a member only when another one has sent something."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as first:
            first.sendall(self.example.ask)
            time.sleep(0.05)
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as second:
                second.sendall(self.example.ask)
                return talk(first, b"", self.example.answer)

    def _asked_at_length(self):
        """Writes and reads at the same time, or the echo would fill both directions."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as stream:
            def write():
                try:
                    stream.sendall(self.example.ask)
                except OSError:
                    pass
            writer = threading.Thread(target=write, daemon=True)
            writer.start()
            served = talk(stream, b"", self.example.answer)
        writer.join(PATIENCE)
        return served

    def _settled(self):
        """It may be about to end, for example because of a connection that it could not serve."""
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            if ended := self._ended():
                return ended
            time.sleep(0.01)
        return None

    def _must_sleep(self):
        used, start = self.process.processor_seconds(), time.monotonic()
        time.sleep(0.2)
        busy = (self.process.processor_seconds() - used) / (time.monotonic() - start)
        if busy > 0.5:
            raise Failed(f"spins: {100 * busy:.0f} % of a processor with nothing to do")

    def _terminate(self, kind):
        self.process.terminate()
        end = time.monotonic() + PATIENCE
        while self.process.exit_code() is None:
            if time.monotonic() > end:
                raise Failed(f"{kind}, and then SIGTERM does not end it")
            time.sleep(0.01)
        code = self.process.exit_code()
        if code == -signal.SIGTERM:
            return kind, "SIGTERM kills it"  # it could not install a handler
        if code == 0:
            return kind, ""
        return self._ended()


def forgotten():
    """Calls of the library, according to its seam, that are missing in CALLS."""
    listed = {each for some in CALLS for each in some.split(",")}
    body = re.search(r"enum class call [^{]*{(.*?)count_of_calls", SEAM.read_text(encoding="utf-8"), re.DOTALL)[1]
    for each in re.findall(r"^\s*(\w+),", body, re.MULTILINE):
        name = OTHER_NAMES.get(each, each)
        if name and name not in listed:
            yield name


def run_one(arguments):
    return Run(*arguments).verdict()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--examples", required=True, help="the directory of the examples' programs")
    parser.add_argument("--refuse", required=True, help="the library to preload")
    parser.add_argument("--only", action="append", help="an example")
    parser.add_argument("--call", action="append", help="only this call, as written in CALLS")
    parser.add_argument("--error", action="append", choices=["EPERM", "ENOSYS"])
    parser.add_argument("--backend", action="append", choices=["automatic", "epoll", "io_uring"])
    parser.add_argument("--short", action="store_true", help="four servers, automatic, EPERM")
    parser.add_argument("--jobs", type=int, default=4, help="examples that run at a time (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="each run")
    return parser.parse_args()


def chosen(options):
    backends = options.backend or (["automatic"] if options.short else ["automatic", "epoll", "io_uring"])
    errors = options.error or (["EPERM"] if options.short else ["EPERM", "ENOSYS"])
    only = options.only or (["echo_server", "port_forward", "file_send", "http_files"] if options.short else None)
    for example in SERVERS + HTTP_SERVERS + CLIENTS:
        if not os.path.exists(os.path.join(options.examples, example.name)):
            continue
        if only and example.name not in only:
            continue
        for backend in example.backends:
            if example.backends != [None] and (backend or "automatic") not in backends:
                continue
            yield options, example, None, None, backend
            for call in options.call or CALLS:
                for error in errors:
                    yield options, example, call, error, backend


def run_all(options):
    runs = list(chosen(options))
    counts = collections.defaultdict(collections.Counter)
    failed, said, allowed = [], collections.defaultdict(set), collections.Counter()
    start = time.monotonic()
    with multiprocessing.Pool(options.jobs) as pool:
        for (_, example, call, error, backend), (kind, text) in zip(runs, pool.imap(run_one, runs)):
            name = f"{example.name:20} {backend or 'automatic':9} {call or '-':24} {error or '-':6}"
            excuse = ALLOWED.get(call) or (ALLOWED_TO_SERVERS.get(call) if example in HTTP_SERVERS else None)
            if kind == "FAILED" and excuse:
                kind = "allowed"
                allowed[f"{call}: {excuse}"] += 1
            if kind in (SAYS_SO, CLOSES) and call in DISPENSABLE and not \
                    (call.startswith("io_uring") and backend == "io_uring"):
                kind, text = "FAILED", f"no fallback: {kind} {text}"
            if kind == "FAILED" or (call is None and kind != WORKS):
                failed.append(f"{name} {text}")
                print(f"FAILED {failed[-1]}", flush=True)
            elif options.verbose:
                print(f"{kind:8} {name} {text}", flush=True)
            counts[example.name, backend or "automatic"][kind] += 1
            if kind in (SAYS_SO, CLOSES):
                said[example.name, backend or "automatic", kind].add(call)
    kinds = [WORKS, SAYS_SO, CLOSES, "allowed", "skipped", "FAILED"]
    print(f"\n{'example':20} {'backend':9} " + " ".join(f"{kind:>8}" for kind in kinds))
    for (name, backend), count in counts.items():
        print(f"{name:20} {backend:9} " + " ".join(f"{count[kind]:8}" for kind in kinds))
    print("\ncalls whose refusal an example reports, or for which it closes the connection:")
    for (name, backend, kind), calls in said.items():
        print(f"  {name:20} {backend:9} {kind}: {' '.join(sorted(calls))}")
    for reason, count in allowed.items():
        print(f"allowed {count} times: {reason}")
    print(f"\n{len(runs)} runs in {time.monotonic() - start:.0f} s, {len(failed)} failed", *failed, sep="\n  ")
    return not failed and bool(runs)


def main():
    options = parse()
    if missing := list(forgotten()):
        sys.exit(f"src/sys/seam.hpp has calls that are not refused here: {' '.join(missing)}")
    options.directory = tempfile.mkdtemp(prefix="simplenet-refusals.")
    options.shared = os.path.join(options.directory, "shared")
    os.mkdir(options.shared)
    options.file = os.path.join(options.shared, "file")
    with open(options.file, "wb") as file:
        file.write(b"x" * 300_000 + b"end of the file")
    options.echo, options.web = echo_server(), web_server()
    try:
        good = run_all(options)
    finally:
        shutil.rmtree(options.directory, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
