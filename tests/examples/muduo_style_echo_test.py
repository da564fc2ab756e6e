"""muduo_style_echo, against clients that do not use the library."""

import os
import signal
import socket
import threading

import support
from support import Server, receive_all, receive_exactly


class muduo_style_echo_test(support.TestCase):
    def test_many_clients_at_once_get_their_own_bytes_back(self):
        problems = []

        def talk(server):
            sent = os.urandom(300000)
            with socket.create_connection((server.host, server.port), support.WAIT) as client:
                sender = threading.Thread(target=client.sendall, args=(sent,))
                sender.start()
                if receive_exactly(client, len(sent)) != sent:
                    problems.append("different bytes came back")
                sender.join()

        with Server("muduo_style_echo") as server:
            clients = [threading.Thread(target=talk, args=(server,)) for _ in range(20)]
            for each in clients:
                each.start()
            for each in clients:
                each.join()
        self.assertEqual(problems, [])

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
            self.assertEqual(server._process.wait(support.WAIT), 0)

    def test_a_port_in_use_is_one_line(self):
        with Server("muduo_style_echo") as server:
            second = support.run(support.with_backend(
                ["muduo_style_echo", "--port", server.port]))
            self.assert_fails(
                second, f"cannot serve on 127.0.0.1:{server.port}: .*Address already in use")


if __name__ == "__main__":
    support.main()
