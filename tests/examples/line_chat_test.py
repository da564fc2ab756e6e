"""line_chat, with clients that do not use the library: Python, nc, socat."""

import shutil
import socket
import subprocess
import unittest

import support
from support import Server, reset


class Guest:
    """Reads line by line."""

    def __init__(self, server, name, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(support.WAIT)
        self.socket.connect((server.host, server.port))
        self._lines = self.socket.makefile("r", newline="\n")
        assert self.hear() == "Your name?"
        self.say(name)

    def say(self, line, end="\n"):
        self.socket.sendall((line + end).encode())

    def hear(self):
        """The next line; None at the end."""
        line = self._lines.readline()
        return line[:-1] if line else None

    def close(self):
        self._lines.close()
        self.socket.close()


class line_chat_test(support.TestCase):
    def enter(self, server, *names):
        """Clients that have all heard that all have joined."""
        guests = []
        for name in names:
            guests.append(Guest(server, name))
            self.addCleanup(guests[-1].close)
            for each in guests:
                self.assertEqual(each.hear(), f"* {name} joined")
        return guests

    def test_a_line_goes_to_all_the_others(self):
        with Server("line_chat") as server:
            ann, ben, cat = self.enter(server, "Ann", "Ben", "Cat")
            ann.say("hello")
            self.assertEqual([ben.hear(), cat.hear()], ["Ann: hello"] * 2)
            cat.say("hello yourself", end="\r\n")
            self.assertEqual([ann.hear(), ben.hear()], ["Cat: hello yourself"] * 2)

    def test_lines_stay_whole_however_they_arrive(self):
        with Server("line_chat") as server:
            ann, ben = self.enter(server, "Ann", "Ben")
            ann.socket.sendall(b"one\ntwo\nth")
            self.assertEqual([ben.hear(), ben.hear()], ["Ann: one", "Ann: two"])
            ann.socket.sendall(b"ree\n")
            self.assertEqual(ben.hear(), "Ann: three")

    def test_a_client_that_quits_gets_goodbye_and_then_the_end(self):
        with Server("line_chat") as server:
            ann, ben = self.enter(server, "Ann", "Ben")
            ann.say("/quit")
            self.assertEqual([ann.hear(), ann.hear()], ["Bye!", None])
            self.assertEqual(ben.hear(), "* Ann left")

    def test_a_close_or_a_reset_ends_one_client_and_the_others_continue(self):
        with Server("line_chat") as server:
            ann, ben, cat = self.enter(server, "Ann", "Ben", "Cat")
            ann.socket.shutdown(socket.SHUT_WR)
            self.assertEqual([ann.hear(), ann.hear()], ["Bye!", None])
            self.assertEqual([ben.hear(), cat.hear()], ["* Ann left"] * 2)
            ben._lines.close()
            reset(ben.socket)
            self.assertEqual(cat.hear(), "* Ben left")

    def test_an_endless_line_disconnects_the_client(self):
        with Server("line_chat") as server:
            ann, ben = self.enter(server, "Ann", "Ben")
            ann.say("x" * 1001)
            self.assertEqual(ann.hear(), "That was too long. Bye!")
            self.assertEqual(ben.hear(), "* Ann left")

    def test_a_client_without_a_name_is_refused(self):
        with Server("line_chat") as server:
            nobody = Guest(server, "")
            self.addCleanup(nobody.close)
            self.assertEqual(nobody.hear(), None)

    def test_a_client_that_never_reads_delays_no_other_and_is_disconnected(self):
        with Server("line_chat") as server:
            ann, ben = self.enter(server, "Ann", "Ben")
            slow = Guest(server, "Slow", receive_buffer=4096)
            self.addCleanup(slow.close)
            for each in (ann, ben):
                self.assertEqual(each.hear(), "* Slow joined")
            # Far more than the kernel buffers for it; each line arrives before the next is sent.
            line = "x" * 990
            heard = None
            for _ in range(20000):
                ann.say(line)
                heard = ben.hear()
                if heard == "* Slow left":
                    break
                self.assertEqual(heard, "Ann: " + line)
            self.assertEqual(heard, "* Slow left")

    @unittest.skipUnless(shutil.which("nc.openbsd") and shutil.which("socat"), "nc or socat is missing")
    def test_nc_and_socat_take_part(self):
        with Server("line_chat") as server:
            ann, = self.enter(server, "Ann")
            for command in (["nc.openbsd", "-N", server.host, str(server.port)],
                            ["socat", "-", f"TCP:{server.host}:{server.port}"]):
                said = subprocess.run(command, input=b"Tool\nhi\n", stdout=subprocess.PIPE,
                                      timeout=support.WAIT, check=True).stdout
                self.assertEqual(said, b"Your name?\n* Tool joined\nBye!\n")
                self.assertEqual([ann.hear() for _ in range(3)],
                                 ["* Tool joined", "Tool: hi", "* Tool left"])


if __name__ == "__main__":
    support.main()
