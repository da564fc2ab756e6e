"""Runs simplenet-httpd as its users do: with a file, signals, and clients of Python's standard library."""

import argparse
import http.client
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from free_port import free_port  # noqa: E402, F401 (for the tests)

LIMIT = 60  # seconds for whatever should happen soon; sanitizers make everything slower

_options = None


def program():
    return _options.program


def backend():
    return _options.backend


def certificates():
    """A directory with server.pem, server.key and root.pem; None without TLS."""
    return _options.certificates


def wait_until(condition, what, log=()):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} has not happened. The log:\n{''.join(log)}")
        time.sleep(0.01)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Httpd:
    """A running program. Its addresses are those that it says it serves; its log is collected."""

    def __init__(self, *arguments, environment=None, listener=None, descriptors=None):
        command = [program(), *arguments, *(["--backend", _options.backend] if _options.backend else [])]
        passed = ()
        if listener:
            # As a service manager passes it (sd_listen_fds(3)): as descriptor 3, to this process.
            passed = (listener.fileno(),)
            command = ["/bin/bash", "-c", f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&{listener.fileno()}', *command]
        if descriptors:
            # Not from here: the child of a process with threads must not do much before exec().
            command = ["/bin/sh", "-c", f'ulimit -n {descriptors} && exec "$0" "$@"', *command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})}, pass_fds=passed)
        self.pid = self.process.pid
        self.lines = []
        self.printed = []
        self._readers = [threading.Thread(target=self._collect, args=each, daemon=True) for each in
                         ((self.process.stderr, self.lines), (self.process.stdout, self.printed))]
        for each in self._readers:
            each.start()
        self.addresses = []
        self.status = None
        wait_until(lambda: self._is_up() or self.process.poll() is not None, "the start", self.lines)

    def _collect(self, stream, into):
        for line in stream:
            into.append(line)

    def _is_up(self):
        # The last thing that it says before it waits for signals.
        return any(" info ready" in line for line in list(self.lines))

    def find_addresses(self):
        """[(scheme, host, port)] of the start, then of those that reloads have added."""
        found = []
        for line in list(self.lines):
            if " info serving " in line:
                match = re.search(r"at=(https?)://(.*):(\d+)/", line)
                found.append((match[1], match[2].strip("[]"), int(match[3])))
        return found

    def port(self, index=0):
        return self.find_addresses()[index][2]

    def said(self, text):
        return any(text in line for line in list(self.lines))

    def descriptors(self):
        """How many it has."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def wait_for(self, text):
        wait_until(lambda: self.said(text), f"{text!r} in the log", self.lines)

    def send(self, number):
        os.kill(self.pid, number)

    def reload(self, expected=" info reloaded"):
        """SIGHUP, and waits for another line with this text."""
        before = sum(expected in line for line in list(self.lines))
        self.send(signal.SIGHUP)
        wait_until(lambda: sum(expected in line for line in list(self.lines)) > before, expected, self.lines)

    def end(self, number=signal.SIGTERM):
        """Ends it, and returns its status."""
        if self.process.poll() is None:
            self.send(number)
        status = self.process.wait(LIMIT)
        for each in self._readers:
            each.join(LIMIT)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        status = self.end()
        if status != 0:
            raise AssertionError(f"the program ended with {status}: {''.join(self.lines)}")


class TestCase(unittest.TestCase):
    """Has a directory, `self.place`, with a folder `www`."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        os.chmod(self.place, 0o755)
        os.mkdir(self.path("www"))
        self.write("www/index.html", "front page")

    def path(self, name):
        return os.path.join(self.place, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        return read(self.path(name))

    def configure(self, site="", listen='address = "127.0.0.1:0"', more=""):
        """Writes the configuration of one site, and returns its path."""
        self.write("httpd.toml", f"""
grace = "5s"
workers = 2
{more}
[[listen]]
{listen}
[[site]]
root = "www"
{site}
""")
        return self.path("httpd.toml")

    def start(self, *arguments, **settings):
        server = Httpd(*(arguments or ("--config", self.path("httpd.toml"))), **settings)
        self.addCleanup(server.end, signal.SIGKILL)
        if server.process.poll() is not None:
            raise AssertionError(f"the program has not started: {''.join(server.lines)}")
        return server

    def run_to_end(self, *arguments, **settings):
        ended = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=LIMIT, check=False, **settings)
        return ended


def get(port, path="/", method="GET", headers=None, body=None, host="127.0.0.1", tls=None, source=None):
    """(status, body, headers) of a request on a connection of its own."""
    if tls:
        client = http.client.HTTPSConnection(host, port, timeout=LIMIT, context=tls)
    else:
        client = http.client.HTTPConnection(host, port, timeout=LIMIT, source_address=source)
    try:
        client.request(method, path, body=body, headers={"Connection": "close", **(headers or {})})
        answer = client.getresponse()
        return answer.status, answer.read().decode("latin-1"), answer.headers
    finally:
        client.close()


def tls_line(name="server"):
    """The key `tls` of a listener, with a certificate of the tests."""
    return 'tls = {{ certificate = "{0}.pem", key = "{0}.key" }}'.format(os.path.join(certificates(), name))


def certificate(name):
    """The text of a certificate of the tests."""
    with open(os.path.join(certificates(), name), encoding="ascii") as file:
        return file.read()


def trusting_context(name=None):
    context = ssl.create_default_context(cafile=os.path.join(certificates(), "root.pem"))
    context.check_hostname = False
    return context


def _is_offered():
    server = Httpd("--listen", "127.0.0.1:0", "--root", tempfile.gettempdir())
    is_refused = server.process.poll() is not None and server.said("cannot start the loops")
    server.end()
    return not is_refused


def main():
    global _options
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--backend")
    parser.add_argument("--certificates")
    _options, left = parser.parse_known_args()
    if _options.backend and not _is_offered():
        if _options.backend in os.environ.get("SIMPLENET_REQUIRE_BACKENDS", ""):
            sys.exit(f"SIMPLENET_REQUIRE_BACKENDS names {_options.backend}, which is unavailable")
        # In the format of GoogleTest, which scripts/test.sh collects.
        print(f"{os.path.basename(sys.argv[0])}: Skipped\n{_options.backend}: not offered by this kernel or build")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *left], verbosity=2)
