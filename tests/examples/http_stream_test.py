"""http_stream, listened to by curl and by hand."""

import os
import re
import signal
import subprocess

import http_support
import support
from http_support import curl
from support import Server

EVENT = r"id: {}\ndata: \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n\n"


class http_stream_test(http_support.TestCase):
    def listen(self, server, *options):
        listener = subprocess.Popen(http_support.curl_command(server, "/events", "-N", *options),
                                    stdout=subprocess.PIPE, text=True)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.addCleanup(listener.stdout.close)
        while listener.stdout.readline() != "\n":
            pass  # the head
        return listener

    def hear(self, listener, number):
        text = "".join(listener.stdout.readline() for _ in range(3))
        self.assertRegex(text, "^" + EVENT.format(number) + "$")

    def test_events_arrive_one_by_one(self):
        with Server("http_stream", "--period-ms", "50") as server:
            listener = self.listen(server)
            for number in range(1, 6):
                self.hear(listener, number)

    def test_each_client_has_its_own_clock(self):
        with Server("http_stream", "--period-ms", "20") as server:
            first = self.listen(server)
            self.hear(first, 1)
            second = self.listen(server)
            self.hear(second, 1)
            self.hear(first, 2)
            first.kill()
            for number in range(2, 10):
                self.hear(second, number)

    def test_the_head_is_that_of_events(self):
        with Server("http_stream") as server:
            client = server.connect()
            client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = http_support.receive_head(client).decode()

        for field in ("Content-Type: text/event-stream", "Cache-Control: no-store", "Transfer-Encoding: chunked"):
            self.assertIn(f"\r\n{field}\r\n", head)

    def test_a_stop_ends_the_stream_with_a_complete_answer(self):
        for options in ([], ["--http1.0"]):
            with Server("http_stream", "--period-ms", "3600000") as server:
                listener = self.listen(server, *options)
                self.hear(listener, 1)
                os.kill(server.pid, signal.SIGTERM)
                self.assertEqual(listener.stdout.read(), "")
                self.assertEqual(listener.wait(support.WAIT), 0)  # else: the last chunk is missing
                self.assertEqual(server.wait(), 0)

    def test_clients_that_do_not_read_delay_nobody(self):
        with Server("http_stream", "--period-ms", "1") as server:
            for _ in range(20):
                server.connect().sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            listener = self.listen(server)
            for number in range(1, 500):
                self.hear(listener, number)

    def test_there_is_a_page(self):
        with Server("http_stream") as server:
            answer = curl(server, "/")

        self.assertEqual(answer.fields["content-type"], "text/html; charset=utf-8")
        self.assertTrue(re.search(rb'new EventSource\("/events"\)', answer.body))


if __name__ == "__main__":
    support.main()
