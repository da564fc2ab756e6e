"""graceful_shutdown, with real signals and clients that do not use the library."""

import signal
import socket
import time

import support
from support import Server, receive_exactly


class Shutdown(Server):
    """A server to which the test sends signals; unlike its base class, it sends none at the end of `with`."""

    def send(self, number):
        self._process.send_signal(number)

    def line(self):
        return self._process.stdout.readline().rstrip("\n")

    def _end(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.stdout.close()
        return self._process.wait() and 0


class graceful_shutdown_test(support.TestCase):
    def echo(self, client, text):
        client.sendall(text)
        self.assertEqual(receive_exactly(client, len(text)), text)

    def test_without_clients_it_ends_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with Shutdown("graceful_shutdown") as server:
                server.send(number)
                self.assertEqual(server.line(), number.name)
                self.assertEqual(server.line(), "waiting for 0 clients")
                self.assertEqual(server.line(), "all clients have left")
                self.assertEqual(server.wait(), 0)

    def test_clients_finish_and_new_ones_are_refused(self):
        with Shutdown("graceful_shutdown") as server:
            first, second = server.connect(), server.connect()
            self.echo(first, b"before")
            self.echo(second, b"before")
            server.send(signal.SIGTERM)
            self.assertEqual([server.line(), server.line()], ["SIGTERM", "waiting for 2 clients"])

            self.echo(first, b"still served")
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection((server.host, server.port), support.WAIT)
            first.close()
            second.close()

            self.assertEqual(server.line(), "all clients have left")
            self.assertEqual(server.wait(), 0)

    def test_clients_that_stay_are_disconnected_after_the_grace_period(self):
        with Shutdown("graceful_shutdown") as server:
            client = server.connect()
            self.echo(client, b"hello")
            start = time.monotonic()
            server.send(signal.SIGTERM)
            self.assertEqual([server.line(), server.line()], ["SIGTERM", "waiting for 1 clients"])

            self.assertEqual(client.recv(1), b"")
            self.assertGreaterEqual(time.monotonic() - start, 1.99)
            self.assertEqual(server.line(), "the others were disconnected")
            self.assertEqual(server.wait(), 0)

    def test_a_second_signal_disconnects_all_clients_at_once(self):
        with Shutdown("graceful_shutdown") as server:
            client = server.connect()
            self.echo(client, b"hello")
            server.send(signal.SIGINT)
            self.assertEqual([server.line(), server.line()], ["SIGINT", "waiting for 1 clients"])

            server.send(signal.SIGINT)
            self.assertEqual(client.recv(1), b"")
            self.assertEqual(server.line(), "the others were disconnected")
            self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    support.main()
