"""A server under observation: started, watched through /proc, ended by SIGTERM."""

import ctypes
import os
import re
import signal
import subprocess
import tempfile
import time

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Failed(Exception):
    """The reason why a case failed."""


def die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def how_it_ended(status):
    if status >= 0:
        return f"status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


class Server:
    """One run of a program that listens. Its output goes to files, which never block it."""

    def __init__(self, command, environment=None, preparation=None):
        self._out = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._error = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._error,
                                         env={**os.environ, **(environment or {})},
                                         preexec_fn=preparation or die_with_parent)
        self.pid = self._process.pid

    def announced(self, line, seconds):
        """The (host, port) that it reports in such a line, or None for a path; fails if it reports neither."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search("^" + line, self.output(), re.MULTILINE)
            if found:
                return (found[1].strip("[]"), int(found[2])) if found[2] else None
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        raise Failed(f"did not report that it listens: {self.status() or 'still runs'} {self.last_words()}")

    def output(self):
        self._out.seek(0)
        return self._out.read()

    def last_words(self):
        """The end of its standard error."""
        self._error.seek(0)
        return " ".join(self._error.read()[-300:].split())

    def status(self):
        """The way it ended; None while it runs."""
        code = self._process.poll()
        return None if code is None else how_it_ended(code)

    def exit_code(self):
        return self._process.poll()

    def must_live(self, when):
        status = self.status()
        if status is not None:
            raise Failed(f"died {when}: {status} {self.last_words()}".rstrip())

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return 0

    def resident(self):
        """Bytes of memory in use."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * _PAGE
        except OSError:
            return 0

    def processor_seconds(self):
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def terminate(self):
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._out.close()
        self._error.close()
