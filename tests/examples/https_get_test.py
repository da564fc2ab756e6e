"""https_get, against http.server over Python's ssl, openssl s_server and gnutls-serv, with TLS 1.2 and 1.3."""

import os
import tempfile
import threading
import unittest

import support
import tls_support
from support import with_backend
from tls_support import ROOT, VERSIONS, PythonTlsServer, file, server_context


class SecureWebServer(support.WebServer):
    """http.server over TLS. At its end a connection is cut without close_notify, as by many servers."""

    def __init__(self, context, directory):
        super().__init__(directory)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)


def get(*urls, options=("--ca",)):
    trust = ["--ca", file(ROOT)] if options == ("--ca",) else list(options)
    return support.run(with_backend(["https_get", *urls, *trust]))


class https_get_test(support.TestCase):
    def test_it_prints_a_page(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "page.txt"), "w", encoding="ascii") as page:
                page.write("forty-two\n" * 50_000)
            for version in VERSIONS:
                with SecureWebServer(server_context(version), directory) as server:
                    for host in ("localhost", "127.0.0.1"):
                        ended = get(f"https://{host}:{server.port}/page.txt")
                        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                        self.assertEqual(ended.stdout, "forty-two\n" * 50_000)

    def test_further_pages_resume_the_session(self):
        for version in VERSIONS:
            with tls_support.s_server(version, "-www") as server:
                url = f"https://localhost:{server.port}/"
                ended = get(url, url, url, options=("--ca", file(ROOT), "--verbose", "yes"))
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual([line.count("resumed") for line in ended.stderr.splitlines()], [0, 1, 1])
                # The server tells it as well.
                self.assertEqual((ended.stdout.count("\nNew, "), ended.stdout.count("\nReused, ")), (1, 2))

    @unittest.skipUnless(tls_support.GNUTLS_SERV, "gnutls-serv is missing")
    def test_gnutls_serves_pages(self):
        for version in VERSIONS:
            with tls_support.gnutls_server(version, "--http", "--disable-client-cert") as server:
                url = f"https://localhost:{server.port}/"
                ended = get(url, url, options=("--ca", file(ROOT), "--verbose", "yes"))
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(ended.stdout.count("</HTML>"), 2, ended.stdout)
                self.assertEqual([line.count("resumed") for line in ended.stderr.splitlines()], [0, 1])

    def test_an_answer_without_length_has_to_end_in_order(self):
        for ends, status in ((tls_support.close, 0), (lambda stream: None, 1)):
            def serve(stream, ends=ends):
                stream.recv(4096)
                stream.sendall(b"HTTP/1.0 200 OK\r\n\r\nall of it")
                ends(stream)

            with PythonTlsServer(server_context(), serve) as server:
                ended = get(f"https://localhost:{server.port}/")
            self.assertEqual(ended.returncode, status)
            if status:
                self.assert_fails(ended, f"https://localhost:{server.port}/: the connection ended without close_notify")

    def test_it_names_the_server(self):
        asked = []

        def serve(stream):
            asked.append(stream.recv(4096))
            stream.sendall(b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n")

        with PythonTlsServer(server_context(), serve) as server:
            self.assertEqual(get(f"https://localhost:{server.port}").returncode, 0)
        self.assertEqual(asked, [f"GET / HTTP/1.0\r\nHost: localhost:{server.port}\r\n\r\n".encode()])

    def test_a_server_that_proves_nothing_gets_no_request(self):
        for name, reason in (("other_host", "certificate is for another host"),
                             ("unknown_issuer", "certificate of an unknown issuer"),
                             ("expired", "certificate has expired")):
            with PythonTlsServer(server_context(name=name), lambda stream: None) as server:
                url = f"https://localhost:{server.port}/"
                self.assert_fails(get(url), f"^{url}: {reason}$")
                self.assertRegex(server.wait_for_a_refusal(), "(?i)alert")

    def test_a_server_without_tls_is_noticed(self):
        with support.WebServer() as server:
            self.assert_fails(get(f"https://localhost:{server.port}/"), "the peer does not speak TLS")

    def test_the_limit_covers_the_handshake(self):
        release = threading.Event()
        with support.PythonServer(lambda stream: release.wait(support.WAIT)) as server:
            ended = get(f"https://localhost:{server.port}/", options=("--timeout-ms", "200"))
            release.set()
        self.assert_fails(ended, "deadline exceeded")

    def test_odd_urls_are_refused(self):
        for url in ("http://localhost/", "localhost", "https://", "https:///", "https://a/b c", "https://a:b/",
                    "https://a:0/", "https://[::1/", "https://::1/", "https://me@a/", "https://a?b", "https://a#b"):
            ended = get(url)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), url)
            self.assertIn("\nUsage: https_get", ended.stderr)
        self.assert_fails(get("https://a b/"), "https://a b/: Invalid argument")

    def test_a_missing_page_is_named(self):
        with tempfile.TemporaryDirectory() as directory, SecureWebServer(server_context(), directory) as server:
            url = f"https://localhost:{server.port}/nothing"
            self.assert_fails(get(url), f"{url}: status 404")


if __name__ == "__main__":
    support.main()
