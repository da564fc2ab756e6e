"""tls_echo_server, against clients over OpenSSL (Python's ssl and openssl(1)), GnuTLS and Go, with TLS 1.2 and 1.3."""

import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

import support
import tls_support
from support import Server, receive_exactly
from tls_support import VERSIONS, connect, client_context, file, identity, s_client


def echo_server(*options, name="server", **others):
    return Server("tls_echo_server", *identity(name), *options, **others)


class tls_echo_server_test(support.TestCase):
    def assert_serves(self, server, **how):
        with connect(server, **how) as client:
            client.sendall(b"hello")
            self.assertEqual(receive_exactly(client, 5), b"hello")
            tls_support.close(client)

    # --- data and ends ---

    def test_python_gets_back_what_it_sends(self):
        with echo_server() as server:
            for version in VERSIONS:
                with connect(server, client_context(version)) as client:
                    self.assertEqual(tls_support.version_of(client), version)
                    tls_support.assert_echoes(self, client, 1 << 20)
                    tls_support.close(client)

    @unittest.skipUnless(tls_support.GNUTLS_CLI, "gnutls-cli is missing")
    def test_gnutls_gets_back_what_it_sends(self):
        with echo_server("--alpn", "h2,http/1.1") as server:
            for version in VERSIONS:
                with tls_support.gnutls_client(server, version, "--alpn=http/1.1") as client:
                    client.expect(rf"Description: \(TLS{version}-")
                    client.expect("Application protocol: http/1.1")
                    client.expect("Simple Client Mode")
                    client.say_and_hear("hello")
                    status, said = client.finish()
                    self.assertEqual(status, 0, said)

    def test_go_gets_back_what_it_sends_and_resumes(self):
        if not tls_support.go_peer():
            self.skipTest("go is missing")
        with echo_server("--alpn", "h2,http/1.1") as server:
            for version in VERSIONS:
                with tls_support.go_client(server, version, "-alpn", "http/1.1", "-times", "2") as client:
                    status, said = client.finish()
                    self.assertEqual((status, said), (0, "echoed resumed=false alpn=http/1.1\n"
                                                         "echoed resumed=true alpn=http/1.1\n"))

    def test_an_end_without_close_notify_ends_only_that_connection(self):
        with echo_server() as server:
            for end in (lambda stream: stream.close(), support.reset):
                client = connect(server)
                client.sendall(b"x")
                self.assertEqual(client.recv(1), b"x")
                end(socket.socket(fileno=client.detach()))
            self.assert_serves(server)

    # --- resumption ---

    def test_python_resumes_a_session(self):
        with echo_server() as server:
            for version in VERSIONS:
                context = client_context(version)
                with connect(server, context) as first:
                    self.assertFalse(first.session_reused)
                    first.sendall(b"x")
                    first.recv(1)  # with it the ticket of TLS 1.3 has come
                    session = first.session
                    tls_support.close(first)
                with connect(server, context, session=session) as second:
                    self.assertTrue(second.session_reused)
                    tls_support.assert_echoes(self, second, 100_000)

    def test_openssl_resumes_a_session_in_another_process(self):
        with tempfile.TemporaryDirectory() as directory, echo_server() as server:
            for version in VERSIONS:
                kept = os.path.join(directory, version)
                for option, expected in (("-sess_out", "New"), ("-sess_in", "Reused")):
                    with s_client(server, version, option, kept) as client:
                        client.say_and_hear("hello")
                        status, said = client.finish()
                        self.assertEqual(status, 0, said)
                        self.assertIn(f"\n{expected}, TLSv", said)

    def test_openssl_resumes_five_times(self):
        with echo_server() as server, s_client(server, "1.2", "-reconnect") as client:
            status, said = client.finish()
            self.assertEqual((status, said.count("\nNew, "), said.count("\nReused, ")), (0, 1, 5), said)

    def test_early_data_is_skipped(self):
        # The ticket of a server that the client knew before, which accepted early data.
        with tempfile.TemporaryDirectory() as directory, echo_server() as server:
            ticket, early = (os.path.join(directory, name) for name in ("ticket", "early"))
            with tls_support.s_server("1.3", "-early_data") as other:
                other.host = server.host
                with s_client(other, "1.3", "-sess_out", ticket) as client:
                    client.say("hello\n")
                    other.expect("hello")
                    other.say("hello\n")
                    client.expect("hello")  # after the ticket
                    client.finish()
            for times in (1, 3276):  # a ticket allows 16 384 bytes
                with open(early, "w", encoding="ascii") as data:
                    data.write("early" * times)
                with s_client(server, "1.3", "-sess_in", ticket, "-early_data", early) as client:
                    client.say_and_hear("hello")
                    status, said = client.finish()
                self.assertEqual(status, 0, said)
                self.assertIn("\nEarly data was rejected\n", said)
                self.assertNotIn("early", said)  # else it would have come back

    @unittest.skipUnless(tls_support.GNUTLS_CLI, "gnutls-cli is missing")
    def test_gnutls_resumes_a_session(self):
        with echo_server() as server:
            for version in VERSIONS:
                with tls_support.gnutls_client(server, version, "--resume", "--waitresumption") as client:
                    client.expect("This is a resumed session")
                    client.expect("Simple Client Mode")
                    client.say_and_hear("hello")

    def test_a_ticket_does_not_open_a_server_with_other_demands(self):
        # Both have the same certificate. Only one knows the keys of the ticket, and it asks for nothing.
        with echo_server() as open_to_all, echo_server("--client-ca", file("root.pem")) as demanding:
            for version in VERSIONS:
                context = client_context(version)
                with connect(open_to_all, context) as first:
                    first.sendall(b"x")
                    first.recv(1)
                    session = first.session
                with self.assertRaises(ssl.SSLError):
                    with connect(demanding, context, session=session) as second:
                        second.recv(1)

    # --- names and protocols ---

    def test_the_name_chooses_the_certificate(self):
        with echo_server(*identity("one"), *identity("two")) as server:
            for name, certificate in (("localhost", "server"), ("one.example", "one"), ("two.example", "two"),
                                      ("below.one.example", "one"), ("ONE.example", "one")):
                for version in VERSIONS:
                    with connect(server, client_context(version), name=name) as client:
                        subject = client.getpeercert()["subject"]
                        self.assertEqual(subject, ((("commonName", certificate),),))
            with s_client(server, "1.3", name=None) as client:  # without a name
                self.assertRegex(client.finish()[1], "\nsubject=CN ?= ?server\n")

    def test_a_name_that_no_certificate_has_gets_the_first(self):
        with echo_server(*identity("one")) as server:
            with self.assertRaisesRegex(ssl.SSLCertVerificationError, "Hostname mismatch"):
                connect(server, name="two.example")

    def test_the_kind_of_key_is_chosen_too(self):
        with echo_server(*identity("server_rsa")) as server:
            for version in VERSIONS:
                for algorithm, kind in (("ECDSA+SHA256", "id-ecPublicKey|EC"), ("RSA-PSS+SHA256", "rsaEncryption|RSA")):
                    with s_client(server, version, "-sigalgs", algorithm) as client:
                        self.assertRegex(client.finish()[1], f"a:PKEY: ({kind}),")

    def test_protocols_are_agreed_on_or_refused(self):
        with echo_server("--alpn", "h2,http/1.1") as server:
            for version in VERSIONS:
                for offered, chosen in ((["http/1.1", "h2"], "h2"), (["x", "http/1.1"], "http/1.1"), ([], None)):
                    with connect(server, client_context(version, alpn=offered)) as client:
                        self.assertEqual(client.selected_alpn_protocol(), chosen)
                with self.assertRaisesRegex(ssl.SSLError, "NO_APPLICATION_PROTOCOL|no application protocol"):
                    connect(server, client_context(version, alpn=["x"]))

    # --- certificates of clients ---

    def test_a_client_with_a_certificate_is_served(self):
        with echo_server("--client-ca", file("root.pem")) as server:
            for version in VERSIONS:
                self.assert_serves(server, context=client_context(version, own="client"))
                with s_client(server, version, "-cert", file("client.pem"), "-key", file("client.key")) as client:
                    client.say_and_hear("hello")
                    # The authorities that the server names.
                    self.assertRegex(client.finish()[1], "Acceptable client certificate CA names\nCN ?= ?root\n")

    def test_clients_without_a_good_certificate_are_refused(self):
        # Each version has its own alert for a missing certificate.
        missing = {"1.2": "HANDSHAKE_FAILURE", "1.3": "CERTIFICATE_REQUIRED"}
        with echo_server("--client-ca", file("root.pem")) as server:
            for version in VERSIONS:
                for own, alert in ((None, missing[version]), ("unknown_issuer", "UNKNOWN_CA"),
                                   ("server", "UNSUPPORTED_CERTIFICATE|BAD_CERTIFICATE"),
                                   ("self_signed", "UNKNOWN_CA"), ("expired_client", "CERTIFICATE_EXPIRED")):
                    with self.assertRaisesRegex(ssl.SSLError, alert, msg=(version, own)):
                        with connect(server, client_context(version, own=own)) as client:
                            client.recv(1)  # in TLS 1.3 the server looks at it after the client is done

    @unittest.skipUnless(tls_support.GNUTLS_CLI, "gnutls-cli is missing")
    def test_gnutls_identifies_itself(self):
        own = ["--x509certfile", file("client.pem"), "--x509keyfile", file("client.key")]
        with echo_server("--client-ca", file("root.pem")) as server:
            for version in VERSIONS:
                with tls_support.gnutls_client(server, version, *own) as client:
                    client.expect("Simple Client Mode")
                    client.say_and_hear("hello")
                with tls_support.gnutls_client(server, version) as client:
                    client.expect("Certificate is required|Handshake failed")

    def test_go_identifies_itself(self):
        if not tls_support.go_peer():
            self.skipTest("go is missing")
        with echo_server("--client-ca", file("root.pem")) as server:
            for version in VERSIONS:
                with tls_support.go_client(server, version, *identity("client"), "-size", "100") as client:
                    self.assertEqual(client.finish()[0], 0, client.output)
                with tls_support.go_client(server, version, "-size", "100") as client:
                    status, said = client.finish()
                    self.assertEqual(status, 1)
                    self.assertRegex(said, "certificate required|handshake failure")

    # --- what a client may ask for later ---

    def test_keys_are_updated(self):
        with echo_server() as server, s_client(server, "1.3") as client:
            client.say_and_hear("hello")
            for command in ("k", "K"):  # the second one asks the server to do the same
                client.say(command + "\n")
                client.expect("KEYUPDATE")
                client.say_and_hear(f"hello {command}")

    def test_a_renegotiation_is_refused(self):
        with echo_server() as server:
            with s_client(server, "1.2") as client:
                client.say_and_hear("hello")
                client.say("R\n")
                client.expect("RENEGOTIATING")
                client.expect("no renegotiation")
            self.assert_serves(server)

    @unittest.skipUnless(tls_support.GNUTLS_CLI, "gnutls-cli is missing")
    def test_a_renegotiation_of_gnutls_is_refused(self):
        with echo_server() as server:
            with tls_support.gnutls_client(server, "1.2", "--rehandshake") as client:
                client.expect("No renegotiation is allowed")
            self.assert_serves(server)

    def test_older_versions_are_refused(self):
        with echo_server() as server:
            for version in ("1", "1.1"):
                with s_client(server, version, "-cipher", "ALL:@SECLEVEL=0") as client:
                    client.expect("alert protocol version")

    @unittest.skipUnless(shutil.which("sslscan"), "sslscan is missing")
    def test_sslscan_finds_nothing_weak(self):
        with echo_server(*identity("server_rsa")) as server:
            ended = subprocess.run(["sslscan", "--no-colour", "--sni-name=localhost", f"{server.host}:{server.port}"],
                                   stdout=subprocess.PIPE, timeout=support.LIMIT, check=True,
                                   universal_newlines=True)
        for line in ("SSLv2 +disabled", "SSLv3 +disabled", "TLSv1.0 +disabled", "TLSv1.1 +disabled",
                     "TLSv1.2 +enabled", "TLSv1.3 +enabled", "Session renegotiation not supported",
                     "TLSv1.2 not vulnerable to heartbleed", "TLSv1.3 not vulnerable to heartbleed"):
            self.assertRegex(ended.stdout, f"(?m)^{line}$")
        ciphers = re.findall(r"(?m)^(?:Preferred|Accepted) +TLSv1\.[23] +(\d+) bits +(\S+)", ended.stdout)
        self.assertEqual(len(ciphers), 9, ended.stdout)
        for bits, name in ciphers:
            self.assertGreaterEqual(int(bits), 128)
            # Forward secrecy, and authenticated encryption: no static RSA, no CBC.
            self.assertRegex(name, "^(TLS_|ECDHE-(ECDSA|RSA)-).*(GCM_SHA|GCM-SHA|CHACHA20.POLY1305)")
        groups = re.findall(r"(?m)^TLSv1\.[23] +\d+ bits +(\S+)(?: \(|$)", ended.stdout)
        self.assertEqual(sorted(groups), ["secp256r1", "secp256r1", "x25519", "x25519"], ended.stdout)

    # --- those who do not speak TLS, or nothing ---

    def test_plain_text_is_answered_with_an_alert(self):
        with echo_server() as server:
            for text in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"hello\n", b"\0" * 100, b"\x16\x03\x01\xff\xff"):
                with server.connect() as client:
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    said = support.receive_all(client)
                    self.assertLessEqual(len(said), 7)  # nothing, or one alert
                    self.assertIn(said[:1], (b"", b"\x15"))
            self.assert_serves(server)

    def test_a_thousand_silent_clients_disturb_nobody(self):
        descriptors = 2500
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < descriptors:
            self.skipTest(f"only {hard} descriptors")
        own = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, own)
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))  # the server inherits it
        with echo_server() as server:
            clients = [server.connect() for _ in range(1000)]
            for client in clients[::2]:
                client.sendall(b"\x16\x03\x01\x02")  # the beginning of a record, and no more
            for version in VERSIONS * 3:
                self.assert_serves(server, context=client_context(version))
            for client in clients:
                client.close()  # or the server would give them its grace to finish

    # --- its life ---

    def test_sigterm_tells_its_clients_that_it_ends(self):
        with echo_server() as server:
            with connect(server) as client:
                client.sendall(b"x")
                client.recv(1)
                os.kill(server.pid, signal.SIGTERM)
                self.assertEqual(client.recv(1), b"")  # a close_notify: Python would raise without one
                tls_support.close(client)
            self.assertEqual(server.wait(), 0)

    def test_sigterm_during_a_handshake_lets_it_finish(self):
        with echo_server() as server:
            with server.connect() as transport:
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                client = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
                with self.assertRaises(ssl.SSLWantReadError):
                    client.do_handshake()
                hello = outgoing.read()
                transport.sendall(hello[:20])
                self.assert_serves(server)  # it has read the beginning by now
                os.kill(server.pid, signal.SIGTERM)
                self.wait_until_refused(server)
                transport.sendall(hello[20:])
                self.until_done(client.do_handshake, transport, incoming)
                transport.sendall(outgoing.read())
                end = self.until_done(lambda: client.read(1), transport, incoming)
                self.assertEqual(end, b"")  # a close_notify
            self.assertEqual(server.wait(), 0)

    def until_done(self, step, transport, incoming):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                some = transport.recv(65536)
                self.assertTrue(some, "the server has hung up")
                incoming.write(some)

    def wait_until_refused(self, server):
        while True:
            try:
                socket.create_connection((server.host, server.port), support.WAIT).close()
            except (ConnectionRefusedError, ConnectionResetError):
                return

    def test_sighup_reads_the_certificates_again(self):
        with tempfile.TemporaryDirectory() as directory:
            chain, key = (os.path.join(directory, name) for name in ("chain.pem", "key.pem"))

            def install(name):
                shutil.copy(file(name + ".pem"), chain)
                shutil.copy(file(name + ".key"), key)

            def number(server):
                with connect(server) as client:
                    return client.getpeercert()["serialNumber"]

            install("server")
            errors = os.path.join(directory, "errors")
            with open(errors, "w", encoding="ascii") as stderr, \
                    Server("tls_echo_server", "--cert", chain, "--key", key, stderr=stderr) as server:
                before = number(server)
                with connect(server) as old:
                    install("server_rsa")
                    tls_support.hang_up(server.pid)
                    self.assertEqual(server.line(), "certificates reloaded")
                    after = number(server)
                    self.assertNotEqual(before, after)
                    old.sendall(b"x")  # connections that are open go on
                    self.assertEqual(old.recv(1), b"x")

                shutil.copy(file("garbage.pem"), chain)
                tls_support.hang_up(server.pid)
                self.assertEqual(server.line(), "the old certificates stay")
                self.assertEqual(number(server), after)
                install("server")
                shutil.copy(file("client.key"), key)  # one that does not fit
                tls_support.hang_up(server.pid)
                self.assertEqual(server.line(), "the old certificates stay")
                self.assertEqual(number(server), after)
                os.unlink(key)
                tls_support.hang_up(server.pid)
                self.assertEqual(server.line(), "the old certificates stay")
                self.assertEqual(number(server), after)
            with open(errors, encoding="ascii") as said:
                lines = said.read().splitlines()
            reasons = ("chain.pem: no certificate in PEM", "does not belong to the certificate",
                       "key.pem: No such file or directory")
            self.assertEqual(len(lines), len(reasons), lines)
            for line, reason in zip(lines, reasons):
                self.assertRegex(line, "^cannot use the certificates: .*" + reason)

    def test_files_that_cannot_be_used_are_named(self):
        for options, reason in (
                (["--cert", "/missing", "--key", file("server.key")], "/missing: No such file or directory"),
                (["--cert", file("garbage.pem"), "--key", file("server.key")], "garbage.pem: no certificate in PEM"),
                (["--cert", file("server.pem"), "--key", file("client.key")], "does not belong to the certificate .*server.pem"),
                (["--cert", file("server.pem"), "--key", file("garbage.pem")], "garbage.pem: no private key"),
                (["--cert", file("server.pem"), "--key", file("server_encrypted.key")],
                 "server_encrypted.key: .*password"),
                ([*identity("server"), "--client-ca", "/missing"], "/missing: No such file or directory"),
                ([*identity("server"), *identity("weak_key")], "weak_key.pem: ee key too small")):
            with self.subTest(reason):
                self.assert_fails(support.run(["tls_echo_server", "--port", "0", *options]),
                                  "^cannot use the certificates: .*" + reason)

    def test_a_port_in_use_is_reported(self):
        with echo_server() as server:
            second = support.run(["tls_echo_server", "--port", server.port, *identity("server")])
            self.assert_fails(second, f"cannot serve at 127.0.0.1:{server.port}: Address already in use")


if __name__ == "__main__":
    support.main()
