"""tls_terminator, between clients with TLS (curl, Python, Go) and servers without."""

import functools
import hashlib
import http.server
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import support
import tls_support
from support import PythonServer, Server, receive_all
from tls_support import ROOT, VERSIONS, client_context, connect, file, identity


def terminator(port, *options, **others):
    return Server("tls_terminator", "--to", f"localhost:{port}", *identity("server"), *options, **others)


def echo(stream):
    while some := stream.recv(65536):
        stream.sendall(some)


class tls_terminator_test(support.TestCase):
    @unittest.skipUnless(shutil.which("curl"), "curl is missing")
    def test_curl_fetches_a_file_through_it(self):
        class quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        with tempfile.TemporaryDirectory() as directory:
            content = hashlib.sha256(b"tls_terminator").digest() * 100_000
            with open(os.path.join(directory, "file"), "wb") as page:
                page.write(content)
            handler = functools.partial(quiet, directory=directory)
            with support.WebServer(handler=handler) as server, terminator(
                    server.port, "--alpn", "http/1.1") as front:
                for version in VERSIONS:
                    url = f"https://localhost:{front.port}/file"
                    fetched = subprocess.run(
                        ["curl", "-sS", "--noproxy", "*", "--cacert", file(ROOT), "--tlsv" + version, "--tls-max",
                         version, url], stdout=subprocess.PIPE, timeout=support.LIMIT, check=True).stdout
                    self.assertTrue(fetched == content)

    @unittest.skipUnless(shutil.which("curl"), "curl is missing")
    def test_curl_identifies_itself(self):
        with support.WebServer() as server, terminator(server.port, "--client-ca", file(ROOT)) as front:
            for version in VERSIONS:
                fetch = ["curl", "-sS", "--noproxy", "*", "--cacert", file(ROOT), "--tlsv" + version, "--tls-max",
                         version, "-o", os.devnull, f"https://localhost:{front.port}/"]
                subprocess.run([*fetch, *identity("client")], timeout=support.LIMIT, check=True)
                refused = subprocess.run(fetch, stderr=subprocess.PIPE, timeout=support.LIMIT, check=False)
                self.assertIn(b"alert", refused.stderr)

    def test_python_sends_and_receives_at_once(self):
        with PythonServer(echo) as server, terminator(server.port) as front:
            for version in VERSIONS:
                with connect(front, client_context(version)) as client:
                    tls_support.assert_echoes(self, client, 4 << 20)
                    tls_support.close(client)

    def test_the_end_of_the_request_is_not_the_end_of_the_reply(self):
        if not tls_support.go_peer():
            self.skipTest("go is missing")

        def answer_late(stream):
            stream.sendall(receive_all(stream))

        with PythonServer(answer_late) as server, terminator(server.port) as front:
            for version in VERSIONS:
                with tls_support.go_client(front, version) as client:
                    self.assertEqual(client.finish()[0], 0, client.output)

    def test_the_end_of_the_server_is_a_close_notify(self):
        with PythonServer(lambda stream: stream.sendall(b"bye")) as server, terminator(server.port) as front:
            with connect(front) as client:
                self.assertEqual(support.receive_exactly(client, 3), b"bye")
                self.assertEqual(client.recv(1), b"")  # Python would raise without a close_notify

    def test_a_client_that_is_cut_off_resets_the_server(self):
        # The server must not take half a request for a whole one.
        for end in (lambda stream: stream.close(), support.reset):
            heard = []
            done = threading.Event()

            def listen(stream):
                try:
                    while some := stream.recv(100):
                        heard.append(some)
                    heard.append("an end")
                except ConnectionResetError:
                    heard.append("a reset")
                done.set()

            with open(os.devnull, "wb") as nowhere, PythonServer(listen) as server, \
                    terminator(server.port, stderr=nowhere) as front:
                client = connect(front)
                client.sendall(b"half")
                end(socket.socket(fileno=client.detach()))
                self.assertTrue(done.wait(support.WAIT))
                self.assertEqual(heard[-1], "a reset")

    def test_a_server_that_is_reset_cuts_the_client_off(self):
        def cut(stream):
            stream.recv(1)
            stream.sendall(b"half")
            support.reset(stream)

        with open(os.devnull, "wb") as nowhere, PythonServer(cut) as server, \
                terminator(server.port, stderr=nowhere) as front:
            for version in VERSIONS:
                with connect(front, client_context(version)) as client:
                    client.sendall(b"x")
                    with self.assertRaises((ssl.SSLEOFError, ConnectionResetError)):
                        while client.recv(100):
                            pass

    def test_a_missing_server_is_reported_and_cuts_the_client_off(self):
        holder, port = support.refused_port()
        with tempfile.TemporaryFile("w+") as errors, holder:
            with terminator(port, stderr=errors) as front, connect(front) as client:
                with self.assertRaises((ssl.SSLEOFError, ConnectionResetError)):
                    client.recv(1)
            errors.seek(0)
            self.assertEqual(errors.read(), f"cannot connect to localhost:{port}: Connection refused\n")

    def test_many_clients_at_once(self):
        with PythonServer(echo) as server, terminator(server.port) as front:
            clients = [connect(front) for _ in range(50)]
            for number, client in enumerate(clients):
                client.sendall(b"%04d" % number)
            for number, client in enumerate(clients):
                self.assertEqual(support.receive_exactly(client, 4), b"%04d" % number)
                tls_support.close(client)


if __name__ == "__main__":
    support.main()
