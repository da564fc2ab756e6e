"""http_echo_server, asked by curl, also over TLS."""

import os

import http_support
import support
from http_support import ask, curl
from support import Server, run, with_backend

MIB = 1024 * 1024


def file(name):
    return os.path.join(support.certificates(), name)


def has_tls():
    return "has no TLS" not in run(["http_echo_server", "--tls", "/missing", "/missing"]).stderr


class http_echo_server_test(http_support.TestCase):
    def test_a_body_comes_back(self):
        with Server("http_echo_server") as server:
            for size in (1, 100, 16 * 1024, 100_000, 5 * MIB):
                sent = os.urandom(size)
                for framing in ([], ["-H", "Transfer-Encoding: chunked"]):
                    answer = curl(server, "/any/path", "--data-binary", "@-", *framing, data=sent)
                    self.assertEqual((answer.status, answer.body == sent), (200, True))

    def test_without_a_body_it_says_ok(self):
        with Server("http_echo_server") as server:
            for options in ([], ["-X", "DELETE"], ["-X", "OPTIONS", "--request-target", "*"], ["-X", "PROPFIND"]):
                answer = curl(server, "/", *options)
                self.assertEqual((answer.status, answer.body), (200, b"ok"), options)

    def test_a_body_that_is_too_large_is_refused_before_it_is_sent(self):
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {64 * MIB + 1}\r\n\r\n"
        with Server("http_echo_server") as server:
            received = ask(server, head.encode())

        self.assertTrue(received.startswith(b"HTTP/1.1 413 "), received)
        self.assertIn(b"\r\nConnection: close\r\n", received)

    def test_the_client_is_told_to_continue(self):
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        with Server("http_echo_server") as server:
            client = server.connect()
            client.sendall(head)
            self.assertEqual(http_support.receive_head(client), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(b"hello")
            self.assertTrue(http_support.receive_head(client).startswith(b"HTTP/1.1 200 "))
            self.assertEqual(support.receive_exactly(client, 5), b"hello")

    def test_an_older_client_is_served(self):
        with Server("http_echo_server") as server:
            answer = curl(server, "/", "--http1.0", "-d", "old")

        self.assertEqual((answer.status, answer.body), (200, b"old"))

    def test_curl_is_served_over_tls(self):
        if not has_tls():
            self.skipTest("this build has no TLS")
        sent = os.urandom(3 * MIB)
        with Server("http_echo_server", "--tls", file("server.pem"), file("server.key")) as server:
            to = ["--cacert", file("root.pem"), "--resolve", f"localhost:{server.port}:127.0.0.1"]
            for version in ("1.2", "1.3"):
                answer = curl(server, "/", *to, f"--tlsv{version}", "--tls-max", version, "--data-binary", "@-",
                              data=sent, scheme="https", host="localhost")
                self.assertEqual((answer.status, answer.body == sent), (200, True))

    def test_http_to_a_server_with_tls_is_refused(self):
        if not has_tls():
            self.skipTest("this build has no TLS")
        with Server("http_echo_server", "--tls", file("server.pem"), file("server.key")) as server:
            received = ask(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

        self.assertTrue(received.startswith(b"HTTP/1.1 400 "), received)
        self.assertTrue(received.endswith(b"https://\n"), received)

    def test_certificates_that_cannot_be_used_are_named(self):
        if not has_tls():
            self.skipTest("this build has no TLS")
        ended = run(with_backend(["http_echo_server", "--tls", "/missing", file("server.key")]))

        self.assertEqual(ended.returncode, 1)
        self.assertIn("/missing", ended.stderr)


if __name__ == "__main__":
    support.main()
