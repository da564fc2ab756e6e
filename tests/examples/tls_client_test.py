"""tls_client, against servers over OpenSSL (Python's ssl and openssl(1)), GnuTLS and Go, with TLS 1.2 and 1.3."""

import socket
import struct
import unittest

import support
import tls_support
from support import with_backend
from tls_support import ROOT, VERSIONS, PythonTlsServer, file, server_context


def command(port, *options, host="localhost", ca=ROOT):
    return with_backend(["tls_client", "--connect", f"{host}:{port}", "--ca", file(ca), *options])


class Client(tls_support.Program):
    """tls_client, to talk to."""

    def __init__(self, port, *options):
        words = command(port, *options)
        super().__init__([support.program(words[0]), *words[1:]])


class tls_client_test(support.TestCase):
    def assert_refuses(self, port, reason, *options, **others):
        self.assert_fails(support.run(command(port, *options, **others)), reason)

    # --- data and ends ---

    def test_python_gets_what_it_sends_and_the_other_way_round(self):
        for version in VERSIONS:
            heard = bytearray()

            def swap(stream, heard=heard):
                stream.sendall(b"x" * 300_000 + b"\n")
                heard += support.receive_exactly(stream, 200_000)
                tls_support.close(stream)

            with PythonTlsServer(server_context(version), swap) as server:
                ended = support.run(command(server.port), text_in="y" * 200_000)
            self.assertEqual((ended.returncode, ended.stdout), (0, "x" * 300_000 + "\n"), ended.stderr)
            self.assertEqual(bytes(heard), b"y" * 200_000)
            self.assertIn(f": TLS {version}, ", ended.stderr)

    def test_the_end_of_the_input_is_a_close_notify_and_the_answer_still_comes(self):
        if not tls_support.go_peer():
            self.skipTest("go is missing")
        for version in VERSIONS:
            with tls_support.go_server(version, "-alpn", "h2,http/1.1") as server:
                # Go's server answers once the client has ended in order.
                ended = support.run(command(server.port, "--alpn", "x,http/1.1"), text_in="hello\n" * 50_000)
                self.assertEqual((ended.returncode, ended.stdout), (0, "hello\n" * 50_000), ended.stderr)
                self.assertIn(", http/1.1, certificate of CN=server\n", ended.stderr)
                server.expect("served resumed=false alpn=http/1.1 name=localhost client=$")

    def test_openssl_answers(self):
        for version in VERSIONS:
            with tls_support.s_server(version, "-rev") as server, Client(server.port) as client:
                client.say("hello\n")
                client.expect("^olleh$")
                status, said = client.finish()
                self.assertEqual(status, 0, said)

    @unittest.skipUnless(tls_support.GNUTLS_SERV, "gnutls-serv is missing")
    def test_gnutls_answers(self):
        for version in VERSIONS:
            with tls_support.gnutls_server(version, "--echo", "--alpn=h2", "--disable-client-cert") as server, \
                    Client(server.port, "--alpn", "h2") as client:
                client.say("hello\n")
                client.expect("^hello$")
                status, said = client.finish()
                self.assertEqual(status, 0, said)
                self.assertIn(", h2, certificate of CN=server\n", said)

    def test_an_end_without_close_notify_is_no_success(self):
        for version in VERSIONS:
            def cut(stream):
                stream.sendall(b"some of it\n")
                self.assertEqual(stream.recv(1), b"")  # the client has ended its side
                socket.socket(fileno=stream.detach()).close()

            with PythonTlsServer(server_context(version), cut) as server:
                ended = support.run(command(server.port))
            self.assertEqual((ended.returncode, ended.stdout), (1, "some of it\n"))
            self.assertIn(f"localhost:{server.port}: the connection ended without close_notify", ended.stderr)

    def test_a_reset_is_no_success(self):
        def cut(stream):
            while stream.recv(1):
                pass  # to its close_notify: or the reset might hit the client while it sends, and not while it reads
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        with PythonTlsServer(server_context(), cut) as server:
            ended = support.run(command(server.port), text_in="x")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Connection reset by peer", ended.stderr)

    def test_the_output_may_be_slow_while_the_input_goes_on(self):
        done = []

        def fill_and_read(stream):
            stream.sendall(b"x" * 1_000_000)
            done.append(len(support.receive_exactly(stream, 1_000_000)))
            tls_support.close(stream)

        with PythonTlsServer(server_context(), fill_and_read) as server, Client(server.port) as client:
            client.say("y" * 1_000_000)  # although nobody reads its output
            status, said = client.finish()
            self.assertEqual((status, said.count("x"), done), (0, 1_000_000, [1_000_000]))

    def test_a_full_disk_is_a_failure(self):
        def speak(stream):
            stream.sendall(b"hello")
            stream.recv(1)

        with PythonTlsServer(server_context(), speak) as server:
            ended = support.run_on_a_full_disk(command(server.port))
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stderr.splitlines()[1:], ["cannot write the output: No space left on device"])

    def test_keys_are_updated(self):
        with tls_support.s_server("1.3") as server, Client(server.port) as client:
            for update in ("k", "K"):  # the second one asks the client to do the same
                server.say(update + "\n")
                client.say("ping\n")
                server.expect("ping")  # it has looked at its input before
                server.say(f"after {update}\n")
                client.expect(f"^after {update}$")
                client.say(f"answer to {update}\n")
                server.expect(f"answer to {update}")

    def test_a_renegotiation_is_refused(self):
        with tls_support.s_server("1.2") as server, Client(server.port) as client:
            client.say("hello\n")
            server.expect("hello")
            server.say("r\n")
            client.expect("renegotiation refused")
            self.assertEqual(client.finish()[0], 1)

    # --- who the server is ---

    def test_certificates_that_prove_nothing_are_refused(self):
        for name, reason in (("other_host", "certificate is for another host"),
                             ("unknown_issuer", "certificate of an unknown issuer"),
                             ("self_signed", "certificate is self-signed"),
                             ("expired", "certificate has expired"),
                             ("future", "certificate is not yet valid"),
                             ("no_server", "certificate may not be used for this purpose")):
            with self.subTest(name), tls_support.s_server("1.3", name=name) as server:
                self.assert_refuses(server.port, f"^localhost:{server.port}: {reason}")

    def test_the_name_to_verify_may_be_another_than_that_of_the_machine(self):
        with tls_support.s_server("1.3", "-servername", "one.example", "-cert2", file("one.pem"), "-key2",
                                  file("one.key"), "-rev") as server:
            for options in (["--name", "one.example"], ["--name", "ONE.example."]):
                with Client(server.port, *options) as client:
                    client.expect("certificate of CN=one$")
            self.assert_refuses(server.port, "certificate is for another host", "--name", "two.example")

    def test_an_address_is_verified_too(self):
        with tls_support.s_server("1.3", "-rev") as server:
            with Client(server.port) as client:
                client.expect("certificate of CN=server")
            ended = support.run(command(server.port, host="127.0.0.1"), text_in="hello\n")
            self.assertIn("certificate of CN=server", ended.stderr)

    def test_the_system_does_not_trust_the_root_of_the_tests(self):
        with tls_support.s_server("1.3") as server:
            ended = support.run(with_backend(["tls_client", "--connect", f"localhost:{server.port}"]))
            self.assert_fails(ended, "certificate of an unknown issuer")

    # --- who the client is ---

    def test_it_shows_its_certificate(self):
        for version in VERSIONS:
            def tell(stream):
                stream.sendall(dict(pair for part in stream.getpeercert()["subject"] for pair in part)
                               ["commonName"].encode())
                tls_support.close(stream)

            context = server_context(version, client_ca=ROOT)
            with PythonTlsServer(context, tell) as server:
                ended = support.run(command(server.port, *tls_support.identity("client")))
                self.assertEqual((ended.returncode, ended.stdout), (0, "client"), ended.stderr)
                # Without one, and with one of a stranger: the server's alert is passed on.
                for options, alert in (([], "certificate required" if version == "1.3" else "handshake failure"),
                                       (tls_support.identity("unknown_issuer"), "unknown ca")):
                    ended = support.run(command(server.port, *options))
                    self.assertEqual((ended.returncode, ended.stdout), (1, ""))
                    self.assertIn(alert, ended.stderr)

    # --- those who do not speak TLS, or nothing in common ---

    def test_a_server_without_tls_is_noticed(self):
        def speak(stream):
            stream.sendall(b"220 mail.example ESMTP\r\n")
            stream.recv(1 << 16)

        with support.PythonServer(speak) as server:
            self.assert_refuses(server.port, "the peer does not speak TLS")

    def test_a_server_that_ends_the_handshake_is_noticed(self):
        with support.PythonServer(lambda stream: stream.recv(1 << 16)) as server:
            self.assert_refuses(server.port, "the connection ended without close_notify")

    def test_a_refusal_is_reported(self):
        holder, port = support.refused_port()
        with holder:
            self.assert_refuses(port, f"^localhost:{port}: Connection refused$")

    def test_no_protocol_in_common(self):
        with tls_support.s_server("1.3", "-alpn", "h2") as server:
            self.assert_refuses(server.port, "no application protocol in common", "--alpn", "x")

    def test_an_old_server_is_refused(self):
        with tls_support.s_server("1.1", "-cipher", "ALL:@SECLEVEL=0") as server:
            self.assert_refuses(server.port, "no TLS version in common|protocol version")

    def test_files_that_cannot_be_used_are_named(self):
        for options, reason in ((["--ca", "/missing"], "/missing: No such file or directory"),
                                (["--ca", file("garbage.pem")], "garbage.pem: no certificate in PEM"),
                                (["--cert", file("client.pem")], "bad TLS configuration"),
                                (["--cert", file("client.pem"), "--key", file("server.key")], "does not belong")):
            ended = support.run(["tls_client", "--connect", "localhost:1", *options])
            self.assert_fails(ended, "^cannot use the certificates: .*" + reason)

    def test_odd_arguments_are_refused(self):
        for to in ("", "localhost", "localhost:", ":443", "localhost:x", "::1:443", "[::1]", "localhost:0"):
            ended = support.run(["tls_client", "--connect", to])
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), to)


if __name__ == "__main__":
    support.main()
