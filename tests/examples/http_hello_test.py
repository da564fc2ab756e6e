"""http_hello, asked by curl and by hand."""

import os
import signal
import subprocess

import http_support
import support
from http_support import ask, curl
from support import Server

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class http_hello_test(http_support.TestCase):
    def test_it_says_hello(self):
        with Server("http_hello") as server:
            answer = curl(server, "/")

        self.assertEqual((answer.status, answer.body), (200, b"Hello, world!\n"))
        self.assertEqual(answer.fields["content-type"], "text/plain")
        self.assertEqual(answer.fields["content-length"], "14")

    def test_it_greets_by_name(self):
        with Server("http_hello") as server:
            answer = curl(server, "/hello/J%C3%A9r%C3%B4me")

        self.assertEqual((answer.status, answer.body), (200, "Hello, Jérôme!\n".encode()))

    def test_head_is_answered_without_a_body(self):
        with Server("http_hello") as server:
            answer = curl(server, "/", "--head")

        self.assertEqual((answer.status, answer.fields["content-length"], answer.body), (200, "14", b""))

    def test_other_paths_and_methods_are_refused(self):
        with Server("http_hello") as server:
            self.assertEqual(curl(server, "/other").status, 404)
            posted = curl(server, "/", "-d", "x=1")
            options = curl(server, "/", "-X", "OPTIONS")

        self.assertEqual((posted.status, options.status), (405, 204))
        for answer in (posted, options):
            self.assertEqual(sorted(answer.fields["allow"].split(", ")), ["GET", "HEAD", "OPTIONS"])

    def test_a_connection_serves_many_requests(self):
        with Server("http_hello") as server:
            url = f"http://{server.host}:{server.port}/"
            ended = subprocess.run([http_support.CURL, "--noproxy", "*", "-sS", "-w", "%{num_connects} ", *[url] * 5],
                                   capture_output=True, timeout=support.LIMIT, check=True)

        self.assertEqual(ended.stdout.replace(b"Hello, world!\n", b"").split(), [b"1", b"0", b"0", b"0", b"0"])

    def test_pipelined_requests_are_answered_in_order(self):
        last = b"GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with Server("http_hello") as server:
            received = ask(server, GET * 20 + last)

        self.assertEqual(received.count(b"HTTP/1.1 200 OK\r\n"), 20)
        self.assertEqual(received.rindex(b"HTTP/1.1 404 "), received.rindex(b"HTTP/1.1 "))

    def test_a_request_with_two_meanings_is_refused(self):
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        smuggled = head + b"0\r\n\r\n"
        with Server("http_hello") as server:
            received = ask(server, smuggled + GET)

        self.assertEqual(received.count(b"HTTP/1.1 "), 1)
        self.assertTrue(received.startswith(b"HTTP/1.1 400 "), received)

    def test_a_stop_closes_connections_that_wait(self):
        with Server("http_hello") as server:
            client = server.connect()
            client.sendall(GET)
            http_support.receive_head(client)
            support.receive_exactly(client, 14)
            os.kill(server.pid, signal.SIGTERM)
            self.assertEqual(client.recv(1), b"")
            self.assertEqual(server.wait(), 0)

    def test_a_port_in_use_is_reported(self):
        self.assert_reports_a_port_in_use("http_hello", "cannot serve: Address already in use")


if __name__ == "__main__":
    support.main()
