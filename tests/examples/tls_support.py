"""Certificates and foreign peers for the tests of the examples with TLS: openssl(1), GnuTLS, Go, Python's ssl."""

import os
import random
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import support

VERSIONS = ("1.2", "1.3")
ROOT = "root.pem"  # has issued the certificates of servers and clients

OPENSSL = shutil.which("openssl")
GNUTLS_CLI = shutil.which("gnutls-cli")
GNUTLS_SERV = shutil.which("gnutls-serv")


def file(name):
    return os.path.join(support.certificates(), name)


def identity(name):
    """The options of our programs, and of Go's peer, for a certificate and its key."""
    return ["--cert", file(name + ".pem"), "--key", file(name + ".key")]


def go_peer():
    """The program made from tls_peer.go; None if Go is missing."""
    path = os.path.join(os.path.dirname(support.certificates()), "tls_peer")
    return path if os.path.exists(path) else None


def version_of(session):
    return session.version().replace("TLSv", "")


# --- programs that talk ---------------------------------------------------------------------------

class Program:
    """A program whose output, both kinds together, is read as it comes; killed at the end of `with`."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, bufsize=0)
        self.output = ""
        self._seen = 0

    def say(self, text):
        self._process.stdin.write(text.encode())

    def end_input(self):
        self._process.stdin.close()

    def expect(self, pattern):
        """Reads until the output that was not expected before matches; returns the match. Otherwise ends the program,
        which may not be in a `with` yet."""
        until = time.monotonic() + support.WAIT
        while not (found := re.search(pattern, self.output[self._seen:], re.MULTILINE)):
            left = until - time.monotonic()
            if not select.select([self._process.stdout], [], [], max(left, 0))[0]:
                self._give_up(f"no {pattern!r} in time")
            some = os.read(self._process.stdout.fileno(), 65536)
            if not some:
                self._give_up(f"no {pattern!r}")
            self.output += some.decode(errors="replace")
        self._seen += found.end()
        return found

    def _give_up(self, why):
        self.kill()
        raise AssertionError(f"{why} in:\n{self.output}")

    def say_and_hear(self, text):
        """A line that the other side echoes."""
        self.say(text + "\n")
        self.expect(text)

    def finish(self):
        """Ends the input; returns the status and the whole output."""
        rest, _ = self._process.communicate(timeout=support.WAIT)
        self.output += rest.decode(errors="replace")
        return self._process.returncode, self.output

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self._process.kill()
        self._process.communicate()


def s_client(server, version, *options, name="localhost"):
    """Prints data and errors at once, and what it has agreed on at the end at the latest."""
    return Program([OPENSSL, "s_client", "-connect", f"{server.host}:{server.port}", "-CAfile", file(ROOT),
                    "-verify_return_error", "-tls" + version.replace(".", "_"),
                    *(["-servername", name] if name else ["-noservername"]), *options])


def s_server(version, *options, name="server"):
    """`port` is where it listens."""
    server = Program([OPENSSL, "s_server", "-accept", "127.0.0.1:0", "-cert", file(name + ".pem"), "-key",
                      file(name + ".key"), "-tls" + version.replace(".", "_"), *options])
    server.port = int(server.expect(r"^ACCEPT .*:(\d+)$")[1])
    return server


def _only(version):
    return "--priority=NORMAL:-VERS-ALL:+VERS-TLS" + version


def gnutls_client(server, version, *options):
    return Program([GNUTLS_CLI, _only(version), "--x509cafile", file(ROOT), *options, "-p", str(server.port),
                    "localhost"])


def gnutls_server(version, *options, name="server"):
    """Of /echo or HTTP, as the options say. It listens on all addresses and cannot choose a port itself. Ports that
    the kernel chooses may be in use on one of the many addresses that other tests have, so take others."""
    for _ in range(20):
        port = random.randrange(10_000, 32_000)
        server = Program([GNUTLS_SERV, _only(version), "--x509certfile", file(name + ".pem"), "--x509keyfile",
                          file(name + ".key"), "-p", str(port), *options])
        if server.expect(rf"IPv4 .* port {port}\.\.\.(done|bind)")[1] == "done":
            server.port = port
            return server
        server.kill()
    raise AssertionError("gnutls-serv finds no port")


def go_client(server, version, *options):
    return Program([go_peer(), "-connect", f"{server.host}:{server.port}", "-version", version, "-ca", file(ROOT),
                    *options])


def go_server(version, *options, name="server"):
    server = Program([go_peer(), "-version", version, *identity(name), *options])
    server.port = int(server.expect(r"^listening on port (\d+)$")[1])
    return server


# --- Python's ssl ---------------------------------------------------------------------------------

def _set_version(context, version):
    if version:
        context.minimum_version = context.maximum_version = {
            "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]


def client_context(version=None, trust=ROOT, own=None, alpn=()):
    context = ssl.create_default_context(cafile=file(trust))
    _set_version(context, version)
    if own:
        context.load_cert_chain(file(own + ".pem"), file(own + ".key"))
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def server_context(version=None, name="server", client_ca=None, alpn=()):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _set_version(context, version)
    context.load_cert_chain(file(name + ".pem"), file(name + ".key"))
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(file(client_ca))
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def connect(server, context=None, name="localhost", session=None):
    """A client of Python's, for which an end without close_notify is an error."""
    stream = socket.create_connection((server.host, server.port), support.WAIT)
    try:
        return (context or client_context()).wrap_socket(
            stream, server_hostname=name, session=session, suppress_ragged_eofs=False)
    except BaseException:
        stream.close()
        raise


class PythonTlsServer(support.PythonServer):
    """Calls `serve(stream)` for each connection, whose handshake is complete. Failed handshakes are in `refused`."""

    def __init__(self, context, serve):
        self.refused = []
        self._done = threading.Condition()

        def shake_hands_and_serve(transport):
            try:
                stream = context.wrap_socket(transport, server_side=True, suppress_ragged_eofs=False)
            except (ssl.SSLError, OSError) as why:
                with self._done:
                    self.refused.append(str(why))
                    self._done.notify_all()
                return
            with stream:
                serve(stream)

        super().__init__(shake_hands_and_serve)

    def wait_for_a_refusal(self):
        with self._done:
            self._done.wait_for(lambda: self.refused, support.WAIT)
            return self.refused[0]


def echo_until_closed(stream):
    """Sends back what comes, and answers a close_notify. Python cannot send after it has come."""
    while some := stream.recv(65536):
        stream.sendall(some)
    close(stream)


def close(stream):
    """Exchanges close_notify."""
    stream.unwrap().close()


def assert_echoes(test, stream, size):
    """Sends random bytes while it receives them back: not in two threads, which OpenSSL forbids."""
    sent = os.urandom(size)
    received = bytearray()
    left = memoryview(sent)
    stream.setblocking(False)
    while len(received) < size:
        wait_to_read = wait_to_write = False
        try:
            if left:
                left = left[stream.send(left[:65536]):]
                continue
        except ssl.SSLWantWriteError:
            wait_to_write = True
        except ssl.SSLWantReadError:
            pass
        try:
            received += stream.recv(65536)
        except ssl.SSLWantReadError:
            wait_to_read = True
        if wait_to_read:
            select.select([stream], [stream] if wait_to_write else [], [], support.WAIT)
    stream.settimeout(support.WAIT)
    test.assertTrue(received == sent, "different bytes came back")


def hang_up(pid):
    os.kill(pid, signal.SIGHUP)
