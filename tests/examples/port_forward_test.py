"""port_forward between clients and servers that do not use the library: Python, curl, nc, socat."""

import functools
import hashlib
import http.server
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import support
from support import PythonServer, Server, receive_all, receive_exactly, refused_port, reset


def forwarding_to(port):
    return Server("port_forward", "--to", f"127.0.0.1:{port}")


def noise(size):
    block = hashlib.sha256(b"port_forward").digest() * 32768  # 1 MiB
    return (block * (size // len(block) + 1))[:size]


def echo(stream):
    while some := stream.recv(65536):
        stream.sendall(some)


class port_forward_test(support.TestCase):
    def test_requests_and_replies_are_forwarded(self):
        with PythonServer(echo) as server, forwarding_to(server.port) as forward:
            client = forward.connect()
            for word in (b"one", b"two", b"three"):
                client.sendall(word)
                self.assertEqual(receive_exactly(client, len(word)), word)

    def test_a_large_transfer_arrives_byte_for_byte_both_ways(self):
        sent = noise(64 * 1024 * 1024)
        with PythonServer(echo) as server, forwarding_to(server.port) as forward:
            client = forward.connect()

            def send():
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
            sending = threading.Thread(target=send)
            sending.start()
            received = receive_all(client)
            sending.join()
            self.assertEqual(hashlib.sha256(received).digest(), hashlib.sha256(sent).digest())

    def test_the_end_of_the_request_is_not_the_end_of_the_reply(self):
        def count(stream):
            question = receive_all(stream)  # until the client has ended
            stream.sendall(b"%d bytes" % len(question))

        with PythonServer(count) as server, forwarding_to(server.port) as forward:
            client = forward.connect()
            client.sendall(b"x" * 1000)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(receive_all(client), b"1000 bytes")

    def test_a_server_that_ends_its_stream_first_can_still_receive(self):
        heard = []
        done = threading.Event()

        def greet(stream):
            stream.sendall(b"bye")
            stream.shutdown(socket.SHUT_WR)
            heard.append(receive_all(stream))
            done.set()

        with PythonServer(greet) as server, forwarding_to(server.port) as forward:
            client = forward.connect()
            self.assertEqual(receive_all(client), b"bye")
            client.sendall(b"last words")
            client.shutdown(socket.SHUT_WR)
            self.assertTrue(done.wait(support.WAIT))
            self.assertEqual(heard, [b"last words"])

    def test_a_reset_is_passed_on(self):
        def listen_and_reset(stream):
            stream.recv(1)  # or connecting may fail, which closes the client's connection in an orderly way
            reset(stream)

        with PythonServer(listen_and_reset) as server, forwarding_to(server.port) as forward:
            client = forward.connect()
            client.sendall(b"x")
            with self.assertRaises(ConnectionResetError):
                client.recv(1)

    def test_a_client_whose_server_is_missing_is_disconnected(self):
        holder, port = refused_port()
        with holder, forwarding_to(port) as forward:
            self.assertEqual(forward.connect().recv(1), b"")

    def test_many_clients_at_once(self):
        with PythonServer(echo) as server, forwarding_to(server.port) as forward:
            clients = [forward.connect() for _ in range(50)]
            for number, client in enumerate(clients):
                client.sendall(b"%04d" % number)
            for number, client in enumerate(clients):
                self.assertEqual(receive_exactly(client, 4), b"%04d" % number)

    @unittest.skipUnless(shutil.which("curl"), "curl is missing")
    def test_curl_fetches_a_file_through_it(self):
        class quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        with tempfile.TemporaryDirectory() as directory:
            content = noise(5_000_000)
            with open(os.path.join(directory, "file"), "wb") as file:
                file.write(content)
            handler = functools.partial(quiet, directory=directory)
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
                threading.Thread(target=server.serve_forever, daemon=True).start()
                with forwarding_to(server.server_address[1]) as forward:
                    fetched = subprocess.run(
                        ["curl", "-sS", "--noproxy", "*", f"http://127.0.0.1:{forward.port}/file"],
                        stdout=subprocess.PIPE, timeout=support.LIMIT, check=True).stdout
                server.shutdown()
            self.assertTrue(fetched == content)

    @unittest.skipUnless(shutil.which("nc.openbsd") and shutil.which("socat"), "nc or socat is missing")
    def test_nc_talks_to_socat_through_it(self):
        # Sorts its input, so it replies only when the client has ended.
        server = subprocess.Popen(
            ["socat", "-d", "-d", "TCP-LISTEN:0,bind=127.0.0.1", "EXEC:sort"],
            stderr=subprocess.PIPE, universal_newlines=True)
        try:
            said = next(line for line in server.stderr if "listening on" in line)
            port = int(said.rpartition(":")[2])
            with forwarding_to(port) as forward:
                answer = subprocess.run(
                    ["nc.openbsd", "-N", "127.0.0.1", str(forward.port)], input=b"b\nc\na\n",
                    stdout=subprocess.PIPE, timeout=support.WAIT, check=True).stdout
            self.assertEqual(answer, b"a\nb\nc\n")
        finally:
            server.stderr.close()
            server.terminate()
            server.wait(support.WAIT)


if __name__ == "__main__":
    support.main()
