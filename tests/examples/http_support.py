"""Clients of HTTP for the tests of the examples: curl(1), and requests that are written by hand."""

import re
import shutil
import socket
import subprocess
import time

import support

CURL = shutil.which("curl")


class Answer:
    """The last answer of curl: status, fields by lower-case name, body."""

    def __init__(self, text):
        head, _, self.body = text.partition(b"\r\n\r\n")
        while re.match(rb"HTTP/1.1 1\d\d ", head):  # 100 Continue
            head, _, self.body = self.body.partition(b"\r\n\r\n")
        line, *fields = head.decode().split("\r\n")
        self.status = int(line.split(" ")[1])
        self.version = line.split(" ")[0]
        self.fields = {}
        for each in fields:
            name, _, value = each.partition(":")
            self.fields.setdefault(name.lower(), value.strip())


def curl_command(server, path, *options, scheme="http", host=None):
    return [CURL, "--noproxy", "*", "-sS", "-i", "--path-as-is", "--max-time", str(support.WAIT), *options,
            f"{scheme}://{host or server.host}:{server.port}{path}"]


def curl(server, path, *options, data=None, **where):
    """One request of curl; data is its standard input."""
    ended = subprocess.run(curl_command(server, path, *options, **where), input=data or b"", capture_output=True,
                           timeout=support.LIMIT, check=False)
    if ended.returncode:
        raise AssertionError(f"curl ended with status {ended.returncode}: {ended.stderr.decode()}")
    return Answer(ended.stdout)


def ask(server, request):
    """Sends bytes and receives until the server closes."""
    with socket.create_connection((server.host, server.port), support.WAIT) as client:
        client.sendall(request)
        return support.receive_all(client)


def receive_head(client):
    """A head, byte by byte, so that nothing behind it is taken."""
    received = b""
    while not received.endswith(b"\r\n\r\n"):
        received += support.receive_exactly(client, 1)
    return received


def wait_until(condition, what):
    end = time.monotonic() + support.WAIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.01)


class TestCase(support.TestCase):
    def setUp(self):
        super().setUp()
        if not CURL:
            self.skipTest("curl is missing")
