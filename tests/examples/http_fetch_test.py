"""http_fetch, against http.server of Python's standard library, and against servers that lie."""

import gzip
import http.server
import os
import ssl
import tempfile

import support
from support import PythonServer, WebServer, refused_port, with_backend


class Teller(http.server.BaseHTTPRequestHandler):
    """Tells what it was asked; redirects from /moved; compresses /packed."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def tell(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = f"{self.command} {self.path} {self.headers.get('X-Test')} {body.decode()}".encode()
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "/found#part")
        if self.path == "/packed":
            text = gzip.compress(text)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = tell


class http_fetch_test(support.TestCase):
    def fetch(self, *words, environment=None):
        return support.run(with_backend(["http_fetch", *words]), environment=environment)

    def told(self, path, *words):
        with WebServer(handler=Teller) as server:
            ended = self.fetch(f"http://localhost:{server.port}{path}", *words)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def test_it_prints_a_page(self):
        self.assertEqual(self.told("/a?b#c"), "GET /a?b None ")

    def test_method_body_and_fields_are_chosen(self):
        self.assertEqual(self.told("/", "-d", "text"), "POST / None text")
        self.assertEqual(self.told("/", "-X", "PUT", "-d", "text", "-H", "X-Test: 1"), "PUT / 1 text")

    def test_redirects_are_followed_if_asked(self):
        self.assertEqual(self.told("/moved"), "GET /moved None ")
        self.assertEqual(self.told("/moved", "-L", "1"), "GET /found None ")

    def test_compressed_pages_are_decompressed(self):
        self.assertEqual(self.told("/packed"), "GET /packed None ")

    def test_the_head_is_printed_if_asked(self):
        head, body = self.told("/", "-i").split("\n\n")
        self.assertTrue(head.startswith("HTTP/1.1 200 OK\n"))
        self.assertIn("\nContent-Length: 11", head)
        self.assertEqual(body, "GET / None ")

    def test_a_file_gets_the_page(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "page")
            self.assertEqual(self.told("/", "-o", path), "")
            with open(path, encoding="ascii") as page:
                self.assertEqual(page.read(), "GET / None ")
            ended = self.fetch("http://localhost/", "-o", os.path.join(directory, "no", "page"))
            self.assert_fails(ended, "No such file or directory")

    def test_a_large_page_is_whole(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "page.txt"), "w", encoding="ascii") as page:
                page.write("forty-two\n" * 500_000)
            with WebServer(directory) as server:
                ended = self.fetch(f"http://127.0.0.1:{server.port}/page.txt")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout, "forty-two\n" * 500_000)

    def test_a_full_disk_is_a_failure(self):
        with WebServer(handler=Teller) as server:
            ended = support.run_on_a_full_disk(
                with_backend(["http_fetch", f"http://localhost:{server.port}/"]))
        self.assertEqual((ended.returncode, ended.stderr),
                         (1, "cannot write the output: No space left on device\n"))

    def test_lies_are_errors(self):
        for answer, problem in ((b"", "ended before"),
                                (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "ended before"),
                                (b"SSH-2.0-x\r\n\r\n", "bad HTTP response"),
                                (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz", "bad HTTP response")):
            def serve(stream, answer=answer):
                stream.recv(4096)
                stream.sendall(answer)

            with PythonServer(serve) as server:
                self.assert_fails(self.fetch(f"http://localhost:{server.port}/"), problem)

    def test_what_cannot_be_reached_is_an_error(self):
        holder, port = refused_port()
        with holder:
            self.assert_fails(self.fetch(f"http://localhost:{port}/"), "Connection refused")

    def test_one_limit_covers_everything(self):
        with PythonServer(lambda stream: stream.recv(4096) and stream.recv(1)) as server:
            self.assert_fails(self.fetch(f"http://localhost:{server.port}/", "--max-time", "1"),
                              "deadline exceeded")

    def test_a_url_or_a_field_that_would_change_the_request_is_refused(self):
        for url in ("localhost", "ftp://localhost/", "http://localhost/a b", "http://u@localhost/"):
            self.assert_fails(self.fetch(url), "bad URL")
        self.assert_fails(self.fetch("http://localhost/", "-H", "X: 1\r\nY: 2"), "Invalid argument")

    def test_servers_are_verified(self):
        root = os.path.join(support.certificates(), "root.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(os.path.join(support.certificates(), "server.pem"),
                                    os.path.join(support.certificates(), "server.key"))
        except OSError:
            self.skipTest("the build has no TLS")

        def serve(stream):
            try:
                with context.wrap_socket(stream, server_side=True) as secure:
                    secure.recv(4096)
                    secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
                    secure.unwrap()
            except (ssl.SSLError, OSError):
                pass

        with PythonServer(serve) as server:
            url = f"https://localhost:{server.port}/"
            self.assert_fails(self.fetch(url), "certificate")
            trusted = self.fetch(url, environment={"SSL_CERT_FILE": root})
            self.assertEqual((trusted.returncode, trusted.stdout), (0, "secret"), trusted.stderr)


if __name__ == "__main__":
    support.main()
