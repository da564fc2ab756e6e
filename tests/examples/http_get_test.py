"""http_get, against http.server of Python's standard library."""

import os
import tempfile
import time

import support
from support import PythonServer, WebServer, refused_port, with_backend


class http_get_test(support.TestCase):
    def get(self, host, port, *options):
        return support.run(with_backend(["http_get", host, *options, "--port", port]))

    def test_it_prints_a_page_of_a_server_found_by_name(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "page.txt"), "w", encoding="ascii") as page:
                page.write("forty-two\n" * 50_000)
            with WebServer(directory) as server:
                ended = self.get("localhost", server.port, "/page.txt")

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout, "forty-two\n" * 50_000)

    def test_a_full_disk_is_a_failure(self):
        with tempfile.TemporaryDirectory() as directory, WebServer(directory) as server:
            ended = support.run_on_a_full_disk(
                with_backend(["http_get", "localhost", "--port", server.port]))

        self.assertEqual((ended.returncode, ended.stderr),
                         (1, "cannot write the output: No space left on device\n"))

    def test_it_names_the_server(self):
        asked = []

        def serve(stream):
            asked.append(stream.recv(4096))
            stream.sendall(b"HTTP/1.0 200 OK\r\n\r\n")

        with PythonServer(serve) as server:
            for host in ("localhost", "127.0.0.1"):
                self.assertEqual(self.get(host, server.port, "/page").returncode, 0)

        self.assertEqual(asked, [f"GET /page HTTP/1.0\r\nHost: {host}:{server.port}\r\n\r\n".encode()
                                 for host in ("localhost", "127.0.0.1")])

    def test_an_incomplete_reply_is_an_error(self):
        for length, status in ((b"11", 1), (b"10", 0), (b"9", 0)):
            def serve(stream, length=length):
                stream.recv(4096)
                stream.sendall(b"HTTP/1.0 200 OK\r\ncontent-LENGTH: " + length + b"\r\n\r\n0123456789")

            with PythonServer(serve) as server:
                ended = self.get("localhost", server.port)

            self.assertEqual(ended.returncode, status)
            if status:
                self.assert_fails(ended, "end of stream")

    def test_a_reply_is_whole_with_its_last_byte(self):
        for length in (0, 10):
            def serve(stream, length=length):
                stream.recv(4096)
                stream.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % length + b"0123456789"[:length])
                stream.recv(1)  # until the client hangs up

            with PythonServer(serve) as server:
                ended = self.get("localhost", server.port)

            self.assertEqual((ended.returncode, ended.stdout), (0, "0123456789"[:length]), ended.stderr)

    def test_an_address_can_be_used_as_a_name(self):
        with tempfile.TemporaryDirectory() as directory, WebServer(directory) as server:
            ended = self.get("127.0.0.1", server.port)

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("Directory listing", ended.stdout)

    def test_a_missing_page_is_named(self):
        with tempfile.TemporaryDirectory() as directory, WebServer(directory) as server:
            ended = self.get("localhost", server.port, "/nothing")

        self.assert_fails(ended, rf"http://localhost:{server.port}/nothing: status 404")

    def test_an_invalid_name_is_refused(self):
        self.assert_fails(self.get("two words", 80), "http://two words/: Invalid argument")

    def test_refusal_is_reported(self):
        holder, port = refused_port()
        with holder:
            self.assert_fails(self.get("localhost", port), f":{port}/: Connection refused")

    def test_one_limit_covers_everything(self):
        # Reads the request and never replies.
        with PythonServer(lambda stream: stream.recv(1) and stream.recv(1 << 20) and
                          stream.recv(1)) as server:
            start = time.monotonic()
            ended = self.get("localhost", server.port, "--timeout-ms", 300)
            took = time.monotonic() - start

        self.assert_fails(ended, "deadline exceeded")
        self.assertGreaterEqual(took, 0.3)

    def test_a_reply_that_is_not_http_is_an_error(self):
        for answer in (b"", b"hello\r\n\r\n", b"HTTP/1.0\r\n\r\n", b"HTTP/1.0 ok\r\n\r\n"):
            def serve(stream, answer=answer):
                stream.recv(4096)
                stream.sendall(answer)
            with PythonServer(serve) as server:
                self.assert_fails(self.get("localhost", server.port), "Bad message")

    def test_a_path_that_would_change_the_request_is_refused(self):
        for path in ("page", "/a b", "/a\r\nX: y", ""):
            ended = self.get("localhost", 80, path)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn("bad path", ended.stderr)


if __name__ == "__main__":
    support.main()
