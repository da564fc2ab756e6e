"""reconnecting_client, against servers that do not use the library."""

import queue
import signal
import socket
import subprocess

import support
from support import PythonServer, refused_port, reset, with_backend


class reconnecting_client_test(support.TestCase):
    def client(self, port, *options):
        return support.run(with_backend(["reconnecting_client", "127.0.0.1", port, *options]))

    def test_it_prints_lines_until_the_server_says_bye(self):
        with PythonServer(lambda stream: stream.sendall(b"one\r\ntwo\nbye\nunseen\n")) as server:
            ended = self.client(server.port)
        self.assertEqual((ended.returncode, ended.stdout), (0, "one\ntwo\nbye\n"), ended.stderr)
        self.assertEqual(ended.stderr, "connected\n")

    def test_it_says_its_words_on_each_connection(self):
        heard = queue.Queue()

        def serve(stream):
            heard.put(support.receive_exactly(stream, 6))
            if heard.qsize() == 3:
                stream.sendall(b"bye\n")

        with PythonServer(serve) as server:
            ended = self.client(server.port, "--say", "hello")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual([heard.get() for _ in range(3)], [b"hello\n"] * 3)
        self.assertEqual(ended.stderr.count("connected\n"), 3 + ended.stderr.count("disconnected\n"))
        self.assertEqual(ended.stderr.count("disconnected: "), 2)

    def test_it_returns_after_an_end_a_reset_and_silence(self):
        count = queue.Queue()

        def serve(stream):
            count.put(1)
            if count.qsize() == 1:
                return
            if count.qsize() == 2:
                reset(stream)
            elif count.qsize() == 3:
                stream.recv(1)  # silence
            else:
                stream.sendall(b"bye\n")

        with PythonServer(serve) as server:
            ended = self.client(server.port, "--idle-ms", 50)
        self.assertEqual((ended.returncode, ended.stdout), (0, "bye\n"), ended.stderr)
        self.assertRegex(ended.stderr, "disconnected: end of stream, next attempt in [0-9]+ ms")
        self.assertRegex(ended.stderr, "Connection reset by peer")
        self.assertRegex(ended.stderr, "disconnected: deadline exceeded")

    def test_it_waits_for_a_server_that_is_not_there_yet(self):
        holder, port = refused_port()
        with subprocess.Popen(
                with_backend([support.program("reconnecting_client"), "127.0.0.1", str(port)]),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True) as client:
            for _ in range(2):
                self.assertRegex(client.stderr.readline(), "cannot connect: Connection refused")
            holder.listen()
            stream, _ = holder.accept()
            with holder, stream:
                stream.sendall(b"bye\n")
                self.assertEqual(client.stdout.read(), "bye\n")
            self.assertEqual(client.wait(support.WAIT), 0)

    def test_it_gives_up(self):
        holder, port = refused_port()
        with holder:
            ended = self.client(port, "--attempts", 3)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
        self.assertEqual(ended.stderr.count("cannot connect: Connection refused"), 3)
        self.assertRegex(ended.stderr, "gave up: ")

    def test_a_signal_ends_it_in_a_pause_and_in_a_session(self):
        with PythonServer(lambda stream: stream.recv(1)) as server:
            holder, port = refused_port()
            with holder:
                for at, line in ((port, "cannot connect"), (server.port, "connected")):
                    with subprocess.Popen(
                            with_backend([support.program("reconnecting_client"), "127.0.0.1",
                                          str(at)]),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            universal_newlines=True) as client:
                        self.assertRegex(client.stderr.readline(), line)
                        client.send_signal(signal.SIGINT)
                        self.assertEqual(client.wait(support.WAIT), 0)


if __name__ == "__main__":
    support.main()
