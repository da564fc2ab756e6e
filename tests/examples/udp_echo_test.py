"""udp_echo, against clients that do not use the library."""

import os
import shutil
import socket
import subprocess
import unittest

import support
from support import WAIT, Server


class udp_echo_test(support.TestCase):
    def client(self, server):
        client = socket.socket(socket.AF_INET6 if ":" in server.host else socket.AF_INET,
                               socket.SOCK_DGRAM)
        self.addCleanup(client.close)
        client.settimeout(WAIT)
        client.connect((server.host, server.port))
        return client

    def test_datagrams_come_back_complete_and_empty_ones_too(self):
        with Server("udp_echo") as server:
            client = self.client(server)
            for size in (1, 0, 2048, 100):
                sent = os.urandom(size)
                client.send(sent)
                self.assertEqual(client.recv(4096), sent)

    def test_a_datagram_that_is_too_long_is_not_answered_in_part(self):
        with Server("udp_echo") as server:
            client = self.client(server)
            client.send(bytes(2049))
            client.send(b"next")
            self.assertEqual(client.recv(4096), b"next")

    def test_clients_each_get_their_own_datagrams(self):
        with Server("udp_echo") as server:
            clients = [self.client(server) for _ in range(50)]
            for number, client in enumerate(clients):
                client.send(b"%d" % number)
            for number, client in enumerate(clients):
                self.assertEqual(client.recv(100), b"%d" % number)

    def test_a_client_that_has_gone_does_no_harm(self):
        with Server("udp_echo") as server:
            gone = self.client(server)
            gone.send(b"bye")
            gone.close()
            client = self.client(server)
            for _ in range(3):
                client.send(b"there?")
                self.assertEqual(client.recv(100), b"there?")

    def test_it_replies_from_the_address_that_received_the_datagram(self):
        with Server("udp_echo", "--address", "0.0.0.0") as server:
            server.host = "127.0.0.2"
            client = self.client(server) # connected: receives only from the server
            client.send(b"?")
            self.assertEqual(client.recv(100), b"?")

    def test_ipv6(self):
        if not socket.has_ipv6:
            self.skipTest("no IPv6")
        with Server("udp_echo", "--address", "::1") as server:
            client = self.client(server)
            client.send(b"six")
            self.assertEqual(client.recv(100), b"six")

    def test_socat_gets_back_what_it_sends(self):
        socat = shutil.which("socat")
        if not socat:
            self.skipTest("no socat")
        with Server("udp_echo") as server:
            received = subprocess.run(
                [socat, "-t", "2", "-", f"UDP:{server.host}:{server.port}"], input=b"over socat",
                stdout=subprocess.PIPE, timeout=WAIT, check=True).stdout
        self.assertEqual(received, b"over socat")


if __name__ == "__main__":
    support.main()
