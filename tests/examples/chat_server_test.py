"""chat_server, with clients that do not use the library."""

import socket

import support
from support import Server, reset


class Guest:
    """Reads line by line."""

    def __init__(self, server, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(support.WAIT)
        self.socket.connect((server.host, server.port))
        self._text = b""

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def hear(self):
        while b"\n" not in self._text:
            some = self.socket.recv(65536)
            if not some:
                raise AssertionError(f"the server ended the connection after {self._text!r}")
            self._text += some
        line, self._text = self._text.split(b"\n", 1)
        return line.decode()


class chat_server_test(support.TestCase):
    def guest(self, server, receive_buffer=None):
        guest = Guest(server, receive_buffer)
        self.addCleanup(guest.socket.close)
        return guest

    def enter(self, server, count):
        """Clients that have all heard that all have joined."""
        guests = []
        for number in range(1, count + 1):
            guests.append(self.guest(server))
            for each in guests:
                self.assertEqual(each.hear(), f"* client {number} joined")
        return guests

    def test_a_line_goes_to_all_the_others(self):
        with Server("chat_server") as server:
            first, second, third = self.enter(server, 3)

            first.say("hello")
            self.assertEqual(second.hear(), "client 1: hello")
            self.assertEqual(third.hear(), "client 1: hello")
            third.say("hello yourself")
            # If it heard its own "hello", that would come first.
            self.assertEqual(first.hear(), "client 3: hello yourself")
            self.assertEqual(second.hear(), "client 3: hello yourself")

    def test_lines_stay_whole_however_they_arrive(self):
        with Server("chat_server") as server:
            first, second = self.enter(server, 2)

            first.socket.sendall(b"one\ntwo\nth")
            self.assertEqual([second.hear(), second.hear()], ["client 1: one", "client 1: two"])
            first.socket.sendall(b"ree\n")
            self.assertEqual(second.hear(), "client 1: three")

    def test_a_leaving_client_is_announced(self):
        with Server("chat_server") as server:
            first, second, third = self.enter(server, 3)

            second.socket.close()
            self.assertEqual(first.hear(), "* client 2 left")
            self.assertEqual(third.hear(), "* client 2 left")

    def test_a_reset_ends_one_client_and_the_others_continue(self):
        with Server("chat_server") as server:
            first, second, third = self.enter(server, 3)

            reset(second.socket)
            self.assertEqual(first.hear(), "* client 2 left")
            self.assertEqual(third.hear(), "* client 2 left")
            first.say("two of us")
            self.assertEqual(third.hear(), "client 1: two of us")

    def test_a_client_that_never_reads_delays_no_other_and_is_disconnected(self):
        with Server("chat_server") as server:
            first, second = self.enter(server, 2)
            self.guest(server, receive_buffer=4096)
            for each in (first, second):
                self.assertEqual(each.hear(), "* client 3 joined")

            # Far more than the kernel buffers for it; each line arrives before the next is sent.
            line = "x" * 4000
            heard = None
            for _ in range(5000):
                first.say(line)
                heard = second.hear()
                if heard == "* client 3 left":
                    break
                self.assertEqual(heard, "client 1: " + line)
            self.assertEqual(heard, "* client 3 left")

    def test_an_endless_line_disconnects_the_client(self):
        with Server("chat_server") as server:
            first, second = self.enter(server, 2)

            first.socket.sendall(b"x" * 20_000)
            self.assertEqual(second.hear(), "* client 1 left")


if __name__ == "__main__":
    support.main()
