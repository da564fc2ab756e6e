"""echo_server, against clients that do not use the library."""

import os
import shutil
import socket
import subprocess
import threading
import unittest

import support
from support import WAIT, Server, receive_all, receive_exactly, reset

MEBIBYTE = 1024 * 1024


class echo_server_test(support.TestCase):
    def assert_serves(self, server):
        with server.connect() as client:
            client.sendall(b"still there?")
            self.assertEqual(receive_exactly(client, 12), b"still there?")

    def test_a_mebibyte_comes_back_and_the_end_of_the_stream_after_it(self):
        sent = os.urandom(MEBIBYTE)

        def send(client):
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)

        with Server("echo_server") as server, server.connect() as client:
            sender = threading.Thread(target=send, args=(client,))
            sender.start()
            received = receive_all(client)
            sender.join()

        self.assertEqual(len(received), len(sent))
        self.assertTrue(received == sent, "different bytes came back")

    def test_nc_gets_back_what_it_sends(self):
        nc = shutil.which("nc")
        if not nc or "OpenBSD" not in subprocess.run(
                [nc, "-h"], stderr=subprocess.PIPE, universal_newlines=True).stderr:
            self.skipTest("no nc that can half-close (OpenBSD's)")
        sent = os.urandom(MEBIBYTE)

        with Server("echo_server") as server:
            received = subprocess.run([nc, "-N", server.host, str(server.port)], input=sent,
                                      stdout=subprocess.PIPE, timeout=WAIT, check=True).stdout

        self.assertTrue(received == sent, "different bytes came back")

    def test_bash_gets_back_what_it_sends(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        script = """exec 4<>"/dev/tcp/$0/$1"
                    for ((i = 0; i < 100; ++i)); do
                        line+=$RANDOM; echo "$line" >&4
                        read -r -t 10 -u 4 back && [[ $back == "$line" ]] || exit 1
                    done"""

        with Server("echo_server") as server:
            subprocess.run(["bash", "-c", script, server.host, str(server.port)], check=True,
                           timeout=WAIT)

    def test_many_clients_at_once_each_get_their_own_bytes(self):
        with Server("echo_server") as server:
            clients = [server.connect() for _ in range(200)]
            messages = [f"client {number}, ".encode() * 20 for number in range(200)]

            for client, message in zip(clients, messages):
                client.sendall(message)
            for client, message in reversed(list(zip(clients, messages))):
                self.assertEqual(receive_exactly(client, len(message)), message)
            for client in clients:
                client.close()

    def test_pipelined_input_comes_back_in_order(self):
        lines = b"".join(b"%d\n" % number for number in range(20_000))

        with Server("echo_server") as server, server.connect() as client:
            client.sendall(lines)
            self.assertEqual(receive_exactly(client, len(lines)), lines)

    def test_single_bytes_come_back_in_order(self):
        sent = os.urandom(500)

        with Server("echo_server") as server, server.connect() as client:
            for at in range(len(sent)):
                client.sendall(sent[at:at + 1])
            self.assertEqual(receive_exactly(client, len(sent)), sent)

    def test_a_client_that_does_not_read_delays_no_other_and_loses_nothing(self):
        with Server("echo_server") as server, server.connect() as greedy:
            sent = bytearray()
            greedy.settimeout(0.5)
            while True:  # until the buffers of both sides are full
                chunk = os.urandom(65536)
                try:
                    while chunk:
                        count = greedy.send(chunk)
                        sent += chunk[:count]
                        chunk = chunk[count:]
                except socket.timeout:
                    break

            self.assert_serves(server)
            greedy.settimeout(WAIT)
            self.assertTrue(receive_exactly(greedy, len(sent)) == sent, "different bytes came back")

    def test_clients_that_reset_their_connection_do_no_harm(self):
        with Server("echo_server") as server:
            for size in (0, 1, MEBIBYTE):
                client = server.connect()
                client.setblocking(False)
                if size:
                    client.send(bytes(size))
                reset(client)
            self.assert_serves(server)

    def test_it_survives_running_out_of_descriptors(self):
        with Server("echo_server", setup=support.few_descriptors(24)) as server:
            clients = [server.connect() for _ in range(40)]  # fits into the backlog
            for client in clients:
                client.sendall(b"hello")

            # It can serve at most 24 at a time; when these leave, the others get their turn.
            for client in clients:
                self.assertEqual(receive_exactly(client, 5), b"hello")
                client.close()

    def test_it_serves_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as reason:
            self.skipTest(f"no IPv6 here: {reason}")

        with Server("echo_server", "--address", "::1") as server:
            self.assert_serves(server)

    def test_it_uses_the_requested_backend(self):
        with Server("echo_server") as server:
            self.assertEqual(server.backend, support.backend())


if __name__ == "__main__":
    support.main()
