"""mtls, with clients of Python and of our own."""

import ssl
import tempfile

import support
import tls_support
from support import Server, receive_all, with_backend
from tls_support import ROOT, VERSIONS, client_context, connect, file, identity

IDENTITY = "CN=client, client.example, number [0-9A-F]+ of CN=root"


def server(**others):
    return Server("mtls", *identity("server"), "--client-ca", file(ROOT), **others)


class mtls_test(support.TestCase):
    def test_it_tells_clients_who_they_are(self):
        with server() as it:
            for version in VERSIONS:
                with connect(it, client_context(version, own="client")) as client:
                    own = client.getsockname()[1]
                    self.assertRegex(receive_all(client).decode(), f"^you are {IDENTITY}\n$")
                    tls_support.close(client)
                self.assertRegex(it.line(), f"^127.0.0.1:{own}: {IDENTITY}$")

    def test_a_resumed_session_has_the_same_identity(self):
        with server() as it:
            for version in VERSIONS:
                context = client_context(version, own="client")
                session = None
                for resumes in (False, True):
                    with connect(it, context, session=session) as client:
                        self.assertRegex(receive_all(client).decode(), f"^you are {IDENTITY}\n$")
                        self.assertEqual(client.session_reused, resumes)
                        session = client.session
                        tls_support.close(client)

    def test_our_client_is_known_too(self):
        with server() as it:
            ended = support.run(with_backend(["tls_client", "--connect", f"localhost:{it.port}", "--ca", file(ROOT),
                                              *identity("client")]))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertRegex(ended.stdout, f"^you are {IDENTITY}\n$")

    def test_it_says_why_a_client_was_refused(self):
        with tempfile.TemporaryFile("w+") as errors:
            with server(stderr=errors) as it:
                for version in VERSIONS:
                    for own in (None, "unknown_issuer", "expired_client", "server"):
                        with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                            with connect(it, client_context(version, own=own)) as client:
                                client.recv(1)
                with it.connect() as client:
                    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    receive_all(client)
            errors.seek(0)
            said = [line.partition(": ")[2].partition(" (")[0] for line in errors.read().splitlines()]
        reasons = ("a certificate is required", "certificate of an unknown issuer", "certificate has expired",
                   "certificate may not be used for this purpose")
        self.assertCountEqual(said, [*reasons, *reasons, "the peer does not speak TLS"])

    def test_it_reads_its_certificates_again(self):
        with server() as it:
            tls_support.hang_up(it.pid)
            self.assertEqual(it.line(), "certificates reloaded")
            with connect(it, client_context(own="client")) as client:
                self.assertRegex(receive_all(client).decode(), f"^you are {IDENTITY}\n$")
                tls_support.close(client)

    def test_it_needs_to_know_whom_to_trust(self):
        ended = support.run(["mtls", *identity("server")])
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("--client-ca is missing", ended.stderr)


if __name__ == "__main__":
    support.main()
