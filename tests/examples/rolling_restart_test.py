"""rolling_restart: it is replaced again and again, and no client is refused or cut off. Its first process listens
itself, or is started by systemd-socket-activate."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import support
from support import receive_exactly

FULL = os.environ.get("SIMPLENET_FULL") == "1"  # see docs/development/testing.md
RESTARTS = 100 if FULL else 5
CLIENTS = 8
LONGEST_MESSAGE = 4096  # what the example reads, and answers, at once


class Line:
    """Processes that succeed each other; the last one is ended at the end of `with`."""

    def __init__(self, starter=(), wake=None):
        """`starter`: the command that starts the first process, as soon as `wake` has run."""
        command = [*starter, support.program("rolling_restart"), "--port", "0"]
        self._first = subprocess.Popen(support.with_backend(command), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, universal_newlines=True)
        self.pid = self._first.pid
        self.address = None
        try:
            if wake:
                wake()
            self.read_start()
        except BaseException:
            self._first.kill()
            raise

    def read_start(self):
        """Of the first process, or of a successor, which writes to the same pipe."""
        found = self.matched(r"listening on (.*):(\d+) \(\w+\)\n")
        self.address = (found[1], int(found[2]))
        self.pid = int(self.matched(r"process (\d+)\n")[1])

    def matched(self, pattern):
        line = self._first.stdout.readline()
        found = re.fullmatch(pattern, line)
        if not found:
            raise AssertionError(f"not {pattern}: {line!r}")
        return found

    def restart(self):
        before = self.pid
        os.kill(before, signal.SIGHUP)
        self.read_start()
        if self.pid == before:
            raise AssertionError("the same process answers")
        self.wait_for_end(before)

    def wait_for_end(self, pid):
        limit = time.monotonic() + support.WAIT
        while time.monotonic() < limit:
            if pid == self._first.pid:
                if self._first.poll() is not None:
                    return
            elif not os.path.exists(f"/proc/{pid}") or is_zombie(pid):
                return
            time.sleep(0.005)
        raise AssertionError("the predecessor does not end")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGTERM)
            self.wait_for_end(self.pid)
        finally:
            if self._first.poll() is None:
                self._first.kill()
            self._first.wait()
            self._first.stdout.close()


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def connect_when_it_listens(port):
    limit = time.monotonic() + support.WAIT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), support.WAIT)
        except ConnectionRefusedError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.01)


class rolling_restart_test(support.TestCase):
    @unittest.skipUnless(shutil.which("systemd-socket-activate"), "systemd-socket-activate is missing")
    def test_systemd_gives_it_the_socket_and_its_first_client(self):
        port = support.free_port()
        clients = []
        starter = ["systemd-socket-activate", "--listen", f"127.0.0.1:{port}"]
        for each in os.environ:
            if each.endswith("SAN_OPTIONS"):
                starter.append(f"--setenv={each}")
        with Line(starter, lambda: clients.append(connect_when_it_listens(port))) as line:
            self.assertEqual(line.address, ("127.0.0.1", port))
            first = clients[0]
            with first:
                first.sendall(b"the first")
                self.assertEqual(receive_exactly(first, 9), b"the first")
                line.restart()  # the successor has the socket, too
                self.assertEqual(line.address, ("127.0.0.1", port))
            with socket.create_connection(line.address, support.WAIT) as second:
                second.sendall(b"the second")
                self.assertEqual(receive_exactly(second, 10), b"the second")

    def test_no_request_fails_while_it_is_replaced(self):
        if FULL:
            signal.alarm(RESTARTS * support.LIMIT)
        over = threading.Event()
        problems, counts = [], []

        def ask(address, seed):
            chosen = random.Random(seed)
            count = 0
            try:
                while not over.is_set():
                    size = chosen.randint(1, LONGEST_MESSAGE)
                    message = chosen.getrandbits(8 * size).to_bytes(size, "big")
                    with socket.create_connection(address, support.WAIT) as client:
                        client.sendall(message)
                        if receive_exactly(client, len(message)) != message:
                            problems.append("different bytes")
                        count += 1
            except (OSError, AssertionError) as problem:
                problems.append(repr(problem))
            counts.append(count)

        longest = 0
        with Line() as line:
            clients = [threading.Thread(target=ask, args=(line.address, seed))
                       for seed in range(CLIENTS)]
            for each in clients:
                each.start()
            address = line.address
            try:
                for _ in range(RESTARTS):
                    before = time.monotonic()
                    line.restart()
                    longest = max(longest, time.monotonic() - before)
                    self.assertEqual(line.address, address)
                    self.assertEqual(problems, [])
            finally:
                over.set()
                for each in clients:
                    each.join()

        self.assertEqual(problems, [])
        self.assertGreater(sum(counts), 0)
        print(f"\nFIGURES rolling_restart: {RESTARTS} restarts, {sum(counts)} connections, none "
              f"refused or cut off; longest {longest * 1000:.0f} ms")

    def test_a_successor_has_as_many_descriptors_as_its_predecessor(self):
        with Line() as line:
            counts = []
            for _ in range(4):
                with socket.create_connection(line.address, support.WAIT) as client:
                    client.sendall(b"x")
                    self.assertEqual(receive_exactly(client, 1), b"x")
                    counts.append(len(os.listdir(f"/proc/{line.pid}/fd")))
                line.restart()
            self.assertEqual(len(set(counts)), 1, counts)

    def test_a_client_in_the_middle_of_a_message_is_served_to_its_end(self):
        with Line() as line:
            with socket.create_connection(line.address, support.WAIT) as client:
                client.sendall(b"a message")
                self.assertEqual(receive_exactly(client, 9), b"a message")
                line.restart()  # ends an idle client between two messages
                self.assertEqual(client.recv(1), b"")


if __name__ == "__main__":
    support.main()
