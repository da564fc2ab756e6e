"""behind_haproxy, behind HAProxy if it is installed, and against headers written by hand."""

import os
import shutil
import socket
import subprocess
import tempfile
import unittest

import support
from support import Server, receive_all

HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")

CONFIGURATION = """
defaults
    mode tcp
    timeout connect 10s
    timeout client 30s
    timeout server 30s
frontend public
    bind fd@{front}
    default_backend servers
backend servers
    server one 127.0.0.1:{back} {how}
"""


class Proxy:
    """HAProxy in front of a server; ended at the end of `with`."""

    def __init__(self, back, how):
        # Passed on open: the number of a port that was only free could be taken meanwhile.
        self._front = socket.create_server(("127.0.0.1", 0))
        self.port = self._front.getsockname()[1]
        self._directory = tempfile.TemporaryDirectory()
        path = os.path.join(self._directory.name, "haproxy.cfg")
        with open(path, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(front=self._front.fileno(), back=back, how=how))
        self._process = subprocess.Popen(
            [HAPROXY, "-f", path, "-db"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, universal_newlines=True, pass_fds=[self._front.fileno()])

    def __enter__(self):
        return self  # clients wait in the backlog until HAProxy has begun

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()
        self._front.close()
        self._directory.cleanup()


class behind_haproxy_test(support.TestCase):
    @unittest.skipUnless(HAPROXY, "haproxy is missing")
    def test_haproxy_tells_the_client_in_both_versions(self):
        for how in ("send-proxy", "send-proxy-v2"):
            with Server("behind_haproxy") as server, Proxy(server.port, how) as proxy:
                for _ in range(20):
                    client = socket.create_connection(("127.0.0.1", proxy.port), support.WAIT,
                                                      source_address=("127.0.0.7", 0))
                    with client:
                        own = client.getsockname()[1]
                        self.assertEqual(receive_all(client).decode(),
                                         f"you are 127.0.0.7:{own}, through 127.0.0.1\n")

    def test_without_a_header_a_client_is_reset(self):
        with Server("behind_haproxy") as server, server.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with self.assertRaises(ConnectionResetError):
                receive_all(client)

    def test_an_address_that_is_no_proxy_is_reset_whatever_it_says(self):
        with Server("behind_haproxy", "--from", "192.0.2.0/24") as server:
            with self.assertRaises((ConnectionResetError, BrokenPipeError)):
                with server.connect() as client:
                    client.sendall(b"PROXY TCP4 192.0.2.1 198.51.100.2 1000 443\r\n")
                    receive_all(client)

    def test_clients_may_come_without_a_proxy_if_told_so(self):
        with Server("behind_haproxy", "--direct", "yes") as server, server.connect() as client:
            host, port = client.getsockname()
            self.assertEqual(receive_all(client).decode(), f"you are {host}:{port}\n")


if __name__ == "__main__":
    support.main()
