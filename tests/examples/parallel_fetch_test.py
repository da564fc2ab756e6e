"""parallel_fetch, against http.server of Python's standard library."""

import http.server
import os
import tempfile
import threading

import support
from support import WAIT, WebServer, with_backend


class parallel_fetch_test(support.TestCase):
    def fetch(self, port, *words):
        return support.run(with_backend(["parallel_fetch", "localhost", *words, "--port", port]))

    def test_it_fetches_every_page(self):
        with tempfile.TemporaryDirectory() as directory:
            for number in range(30):
                with open(os.path.join(directory, f"page{number}"), "wb") as page:
                    page.write(b"x" * number * 1000)
            with WebServer(directory) as server:
                ended = self.fetch(server.port, *(f"/page{n}" for n in range(30)))

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(sorted(ended.stdout.splitlines()),
                         sorted(f"/page{n}: {n * 1000} bytes" for n in range(30)))

    def test_the_limit_of_concurrent_fetches_is_kept(self):
        guard = threading.Lock()
        together = threading.Barrier(3, timeout=WAIT)
        counts = {"now": 0, "most": 0}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with guard:
                    counts["now"] += 1
                    counts["most"] = max(counts["most"], counts["now"])
                together.wait()  # breaks unless three are here at the same time
                with guard:
                    counts["now"] -= 1
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        with WebServer(handler=Handler) as server:
            ended = self.fetch(server.port, *(f"/{n}" for n in range(12)), "--at-once", "3")

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(len(ended.stdout.splitlines()), 12)
        self.assertEqual(counts["most"], 3)

    def test_a_page_that_fails_does_not_stop_the_others(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "there"), "wb") as page:
                page.write(b"12345")
            with WebServer(directory) as server:
                ended = self.fetch(server.port, "/there", "/not", "/there")

        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stdout, "/there: 5 bytes\n" * 2)
        self.assertEqual(ended.stderr, "/not: status 404\n")

    def test_a_missing_server_is_reported_for_every_page(self):
        holder, port = support.refused_port()
        with holder:
            ended = self.fetch(port, "/a", "/b")

        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertEqual(sorted(ended.stderr.splitlines()),
                         ["/a: Connection refused", "/b: Connection refused"])


if __name__ == "__main__":
    support.main()
