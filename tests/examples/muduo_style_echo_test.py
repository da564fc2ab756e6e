"""muduo_style_echo, against clients that do not use the library."""

import os
import signal
import socket

import support
from support import Server, receive_all, receive_exactly


class muduo_style_echo_test(support.TestCase):
    def test_many_clients_at_once_get_their_own_bytes_back(self):
        with Server("muduo_style_echo") as server:
            self.assert_echoes(server, 300000)

    def test_a_client_that_does_not_read_has_to_wait(self):
        with Server("muduo_style_echo") as server:
            client = server.connect()
            client.sendall(b"x")
            self.assertEqual(receive_exactly(client, 1), b"x")

            piece, sent = b"y" * 65536, 0
            client.settimeout(1)
            try:
                while sent < 256 << 20:  # more than the sockets hold
                    sent += client.send(piece)
                self.fail("the server takes everything")
            except socket.timeout:
                pass

            client.settimeout(support.WAIT)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(len(receive_all(client)), sent)

    def test_a_signal_ends_it_with_its_clients(self):
        with Server("muduo_style_echo") as server:
            client = server.connect()
            client.sendall(b"before")
            self.assertEqual(receive_exactly(client, 6), b"before")
            os.kill(server.pid, signal.SIGTERM)
            self.assertEqual(receive_all(client), b"")
            self.assertEqual(server.wait(), 0)

    def test_a_port_in_use_is_one_line(self):
        self.assert_reports_a_port_in_use(
            "muduo_style_echo", "cannot serve on {host}:{port}: .*Address already in use")


if __name__ == "__main__":
    support.main()
