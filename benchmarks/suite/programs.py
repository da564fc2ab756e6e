"""Starts servers and load clients, each on its processor, and reads their output."""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import time

from . import lines


class Failed(Exception):
    """A run that gave no figure; the text says why."""


LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def pinned(cpu):
    """For preexec_fn: the child runs only on this processor (any, if None), and ends with us.

    It gets SIGTERM even if we are killed: a server that kept running would disturb the next run.
    """
    parent = os.getpid()

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # too late for the line above
            os.kill(os.getpid(), signal.SIGKILL)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    return prepare


class Server:
    """A server of the suite while it runs; a context manager. The server prints its port as its first line."""

    def __init__(self, command, cpu, environment=None):
        self.command = command
        self.cpu = cpu
        self.environment = environment

    def __enter__(self):
        surroundings = {**os.environ, **self.environment} if self.environment else None
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=pinned(self.cpu),
            env=surroundings,
        )
        try:
            self.port = self.read_port()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Ended by their ids, because servers serve for ever; those of several processes do not end with the first.
        if self.process.poll() is None:
            for each in family(self.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def end(self):
        """Ends it with a signal that an enclosing tool can handle, and waits for the end."""
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            raise Failed("the server did not end") from None

    @property
    def pid(self):
        return self.process.pid

    def read_port(self):
        readable, _, _ = select.select([self.process.stdout], [], [], 20)
        line = self.process.stdout.readline() if readable else b""
        if line.strip().isdigit():
            return int(line)
        if self.process.poll() is None:
            self.process.kill()
        said = self.process.stderr.read().decode(errors="replace").strip()
        raise Failed(f"{os.path.basename(self.command[0])} did not start: {said[-200:]}")


def run_text(command, cpu, timeout, environment=None):
    """Returns the standard output of a program; raises Failed if it fails or takes too long."""
    name = os.path.basename(command[0])
    surroundings = {**os.environ, **environment} if environment else None
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=pinned(cpu),
            env=surroundings,
        )
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}") from None
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as stopped:
            ask_to_end(process)
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise Failed(f"{name} took more than {timeout} s") from None
            raise
    if process.returncode != 0:
        raise Failed(f"{name} failed ({process.returncode}): {err.strip()[-200:]}")
    return out


def ask_to_end(process):
    """A script has its own children to end, so SIGKILL comes only later."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()


def run_load(client, server, cpu, options, timeout):
    """Runs the load client against a server once. Returns numbers by name."""
    command = [client, "--port", str(server.port), "--peer", str(server.pid)]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    try:
        return lines.numbers(run_text(command, cpu, timeout))
    except Failed as failed:
        if server.process.poll() is not None:
            raise Failed(f"the server ended with {server.process.returncode}") from None
        raise failed


def processor_ns(pid):
    """The processor time of all threads of a process: clock_getcpuclockid(3), which Python lacks."""
    return int(time.clock_gettime((~pid << 3) | 2) * 1e9)


def family(pid):
    """A process and all that descend from it."""
    children = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{each}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        if state not in "ZX":  # nor has it ended, and nobody has asked for its status
            children.setdefault(int(parent), []).append(int(each))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def processor_ns_of_all(pid):
    """The processor time of a server of several processes; those that have ended do not count."""
    total = processor_ns(pid)
    for each in family(pid)[1:]:
        with contextlib.suppress(OSError):  # it has just ended
            total += processor_ns(each)
    return total


def anonymous_bytes_of_all(pid):
    return sum(map(anonymous_bytes, family(pid)))


def anonymous_bytes(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise Failed("no RssAnon in /proc")


class HeldLoad:
    """A load client whose connections stay open, with the figures of its run; a context manager."""

    def __init__(self, client, server, cpu, options, timeout):
        command = [client, "--port", str(server.port), "--hold", "1"]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        self.command, self.cpu, self.timeout = command, cpu, timeout

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=pinned(self.cpu),
        )
        try:
            readable, _, _ = select.select([self.process.stdout], [], [], self.timeout)
            line = self.process.stdout.readline() if readable else b""
            if not line:
                self.process.kill()
                said = self.process.stderr.read().decode(errors="replace").strip()
                raise Failed(f"load_client: {said[-200:] or 'nothing came'}")
            return lines.numbers(line.decode())
        except BaseException:
            self.process.kill()
            self.__exit__()
            raise

    def __exit__(self, *_):
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def have(program):
    return shutil.which(program)


def settle():
    """Lets the kernel finish with the sockets of the previous run."""
    time.sleep(0.02)
