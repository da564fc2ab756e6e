"""Common parts of the tests of the examples: running them, and peers that use only the standard library, so
that both sides cannot share the same mistake."""

import argparse
import ctypes
import http.server
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402, F401 (for the tests)

# Sanitizers make everything several times slower; ctest has a limit of its own.
LIMIT = 60  # seconds for one test
WAIT = 20  # seconds for one answer

_options = None


def examples():
    return _options.examples


def backend():
    """The backend under test; None for examples without a choice."""
    return _options.backend


def certificates():
    """The directory of the certificates of the tests, for examples with TLS."""
    return _options.certificates


def program(name):
    return os.path.join(examples(), name)


def with_backend(command):
    """Appends the backend under test to a command of an example that takes one."""
    return command + (["--backend", backend()] if backend() else [])


# --- the child's side of fork ---------------------------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_IO_URING_SETUP = 425  # the same number on every architecture


def _die_with_parent():
    # If the test is killed, the server dies with it.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def refuse_io_uring(error):
    """For `setup`: from here on io_uring_setup(2) fails with `error`, as in many containers."""

    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                    ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]

    def apply():
        steps = (Filter * 4)(
            Filter(0x20, 0, 0, 0),  # load the number of the system call
            Filter(0x15, 0, 1, _IO_URING_SETUP),
            Filter(0x06, 0, 0, 0x00050000 | error),  # SECCOMP_RET_ERRNO
            Filter(0x06, 0, 0, 0x7FFF0000))  # SECCOMP_RET_ALLOW
        rules = Program(len(steps), steps)
        if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
                _libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(rules), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    return apply


def few_descriptors(count):
    """For `setup`: limits the number of open files."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def _preparation(setup):
    def prepare():
        _die_with_parent()
        if setup:
            setup()
    return prepare


# --- examples -------------------------------------------------------------------------------------

def run(command, setup=None, environment=None, text_in=None, stdout=subprocess.PIPE):
    """Runs an example to its end; returns .returncode, .stdout, .stderr as text."""
    return subprocess.run(
        [program(command[0])] + [str(word) for word in command[1:]], preexec_fn=_preparation(setup),
        env={**os.environ, **(environment or {})}, input=text_in, stdin=None if text_in else
        subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=LIMIT,
        universal_newlines=True)


def run_on_a_full_disk(command):
    """Like run(), but every write to standard output fails for lack of space."""
    with open("/dev/full", "w", encoding="ascii") as full:
        return run(command, stdout=full)


class Server:
    """An example that listens, on a port chosen by the kernel; ended at the end of `with`."""

    def __init__(self, name, *options, setup=None, environment=None, choose_backend=True,
                 stderr=None):
        command = [program(name), "--port", "0", *options]
        if choose_backend:
            command = with_backend(command)
        self._process = subprocess.Popen(
            command, preexec_fn=_preparation(setup), env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            universal_newlines=True)
        self.pid = self._process.pid
        line = self._process.stdout.readline()
        found = re.fullmatch(r"listening on (.*):(\d+) \((epoll|io_uring)\)\n", line)
        if not found:
            self._end()
            raise AssertionError(f"{name} did not report where it listens: {line!r}")
        self.host = found[1].strip("[]")
        self.port = int(found[2])
        self.backend = found[3]
        self._clients = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            status = self._end() # with its clients connected, which must not delay the end
        finally:
            for each in self._clients:
                each.close()
        # 0: a server that handles the signal. Any other status is an unnoticed crash.
        if kind is None and status not in (0, -signal.SIGTERM):
            raise AssertionError(f"the server ended with status {status}")

    def _end(self):
        self._process.terminate()
        try:
            return self._process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError("the server ignored SIGTERM") from None
        finally:
            self._process.stdout.close()

    def line(self):
        """The next line of its output."""
        return self._process.stdout.readline().rstrip("\n")

    def wait(self):
        """Waits until it ends by itself; returns its status."""
        return self._process.wait(WAIT)

    def connect(self):
        """A client that is closed with the server at the latest."""
        client = socket.create_connection((self.host, self.port), WAIT)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._clients.append(client)
        return client


# --- peers that do not use the library ------------------------------------------------------------

def receive_exactly(stream, size):
    received = bytearray()
    while len(received) < size:
        some = stream.recv(min(65536, size - len(received)))
        if not some:
            raise AssertionError(f"end of stream after {len(received)} of {size} bytes")
        received += some
    return bytes(received)


def receive_all(stream):
    received = bytearray()
    while some := stream.recv(65536):
        received += some
    return bytes(received)


def reset(stream):
    """Ends the connection so that the other side gets ECONNRESET."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


class PythonServer:
    """Serves each connection with `serve(stream)` in a thread of its own, until the end of `with`."""

    def __init__(self, serve):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._serve = serve
        self.problem = None
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        try:
            while True:
                stream, _ = self._listener.accept()
                stream.settimeout(WAIT)
                threading.Thread(target=self._guarded, args=(stream,), daemon=True).start()
        except OSError:
            pass  # closed

    def _guarded(self, stream):
        try:
            with stream:
                self._serve(stream)
        except OSError as problem:
            self.problem = problem

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._thread.join(WAIT)
        self._listener.close()


class WebServer:
    """http.server with the files of a directory, or with a handler; ended at the end of `with`."""

    def __init__(self, directory=None, handler=None):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=directory)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler or Quiet)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Silent:
    """A listener with a full backlog that accepts nothing: connecting to it waits forever."""

    def __enter__(self):
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.port = self._listener.getsockname()[1]
        self._queued = []
        while True:
            waiting = socket.socket()
            waiting.settimeout(1)
            self._queued.append(waiting)
            try:
                waiting.connect(("127.0.0.1", self.port))
            except socket.timeout:
                return self

    def __exit__(self, *_):
        for each in self._queued:
            each.close()
        self._listener.close()


def refused_port():
    """A port without a listener: bound, and never listened on. A server may be told to listen there
    (SO_REUSEADDR, socket(7)); the kernel never chooses it for others."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


# --- running --------------------------------------------------------------------------------------

class TestCase(unittest.TestCase):
    """Prints its own name if it hangs."""

    def setUp(self):
        def hangs(*_):
            raise AssertionError(f"{self.id()} hangs")
        signal.signal(signal.SIGALRM, hangs)
        signal.alarm(LIMIT)

    def tearDown(self):
        signal.alarm(0)

    def assert_fails(self, ended, message):
        """Expects status 1, nothing on standard output, and one line that names the cause."""
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
        self.assertRegex(ended.stderr, message)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)

    def assert_echoes(self, server, size, clients=20):
        """Expects that each of many clients at once gets back what it has sent: `size` random bytes."""
        problems = []

        def talk():
            sent = os.urandom(size)
            with socket.create_connection((server.host, server.port), WAIT) as client:
                sender = threading.Thread(target=client.sendall, args=(sent,))
                sender.start()
                try:
                    if receive_exactly(client, size) != sent:
                        problems.append("different bytes came back")
                except (AssertionError, OSError) as problem:
                    problems.append(str(problem))
                sender.join()

        talks = [threading.Thread(target=talk) for _ in range(clients)]
        for each in talks:
            each.start()
        for each in talks:
            each.join()
        self.assertEqual(problems, [])

    def assert_reports_a_port_in_use(self, name, message):
        with Server(name) as server:
            second = run(with_backend([name, "--port", server.port]))
            self.assert_fails(second, message.format(host=server.host, port=server.port))


def _backend_is_offered():
    ended = subprocess.run([program("backend_switch")], stdout=subprocess.PIPE, timeout=LIMIT,
                           universal_newlines=True)
    return f"{backend()}: works" in ended.stdout


def main():
    """Runs the tests of the calling file: --examples DIRECTORY [--backend NAME] [--certificates DIRECTORY]."""
    global _options
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", required=True)
    parser.add_argument("--backend")
    parser.add_argument("--certificates")
    _options, rest = parser.parse_known_args()

    if backend() and not _backend_is_offered():
        if backend() in os.environ.get("SIMPLENET_REQUIRE_BACKENDS", ""):
            sys.exit(f"SIMPLENET_REQUIRE_BACKENDS names {backend()}, which is unavailable")
        # In the format of GoogleTest, which scripts/test.sh collects.
        name = os.path.basename(sys.argv[0])
        print(f"{name}: Skipped\n{backend()}: not offered by this kernel, sandbox or build")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
