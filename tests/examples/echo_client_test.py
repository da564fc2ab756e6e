"""echo_client, against servers that do not use the library."""

import queue

import support
from support import PythonServer, refused_port, with_backend


def echo(stream):
    while some := stream.recv(65536):
        stream.sendall(some)


class echo_client_test(support.TestCase):
    def client(self, port, *options):
        return support.run(with_backend(["echo_client", "127.0.0.1", port, *options]))

    def test_it_reports_the_rate_of_its_round_trips(self):
        with PythonServer(echo) as server:
            ended = self.client(server.port, "--round-trips", 300, "--size", 100)

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout, r"^300 round trips, \d+ per second\n$")

    def test_it_can_send_the_largest_message(self):
        with PythonServer(echo) as server:
            ended = self.client(server.port, "--round-trips", 20, "--size", 65536)

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_it_sends_exactly_what_it_announces(self):
        sizes = queue.Queue()

        def count(stream):
            total = 0
            while some := stream.recv(65536):
                stream.sendall(some)
                total += len(some)
            sizes.put(total)

        with PythonServer(count) as server:
            self.client(server.port, "--round-trips", 7, "--size", 11)
            self.assertEqual(sizes.get(timeout=support.WAIT), 77)

    def test_it_notices_a_wrong_byte(self):
        def corrupt(stream):
            while some := stream.recv(65536):
                stream.sendall(some[:-1] + bytes([some[-1] ^ 1]))

        with PythonServer(corrupt) as server:
            self.assert_fails(self.client(server.port), "Bad message")

    def test_it_notices_a_reply_that_is_one_message_late(self):
        def late(stream):
            before = bytes(64)
            while len(some := stream.recv(64)) == 64:
                stream.sendall(before)
                before = some

        with PythonServer(late) as server:
            self.assert_fails(self.client(server.port), "Bad message")

    def test_it_reports_a_server_that_closes(self):
        with PythonServer(lambda stream: stream.recv(1)) as server:
            self.assert_fails(self.client(server.port, "--size", 65536),
                              "end of stream|Connection reset|Broken pipe")

    def test_it_reports_refusal(self):
        holder, port = refused_port()
        with holder:
            self.assert_fails(self.client(port), f"127.0.0.1:{port}: Connection refused")


if __name__ == "__main__":
    support.main()
