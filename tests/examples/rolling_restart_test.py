"""rolling_restart: it is replaced again and again, and no client is refused or cut off."""

import os
import re
import signal
import socket
import subprocess
import threading
import time

import support
from support import receive_exactly

RESTARTS = 5
CLIENTS = 8


class Line:
    """Processes that succeed each other; the last one is ended at the end of `with`."""

    def __init__(self):
        command = [support.program("rolling_restart"), "--port", "0"]
        self._first = subprocess.Popen(support.with_backend(command), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, universal_newlines=True)
        self.pid = self._first.pid
        self.address = None
        try:
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


class rolling_restart_test(support.TestCase):
    def test_no_request_fails_while_it_is_replaced(self):
        over = threading.Event()
        problems, counts = [], []

        def ask(address):
            count = 0
            try:
                while not over.is_set():
                    with socket.create_connection(address, support.WAIT) as client:
                        client.sendall(b"0123456789")
                        if receive_exactly(client, 10) != b"0123456789":
                            problems.append("different bytes")
                        count += 1
            except (OSError, AssertionError) as problem:
                problems.append(repr(problem))
            counts.append(count)

        with Line() as line:
            clients = [threading.Thread(target=ask, args=(line.address,)) for _ in range(CLIENTS)]
            for each in clients:
                each.start()
            address = line.address
            for _ in range(RESTARTS):
                line.restart()
                self.assertEqual(line.address, address)
            over.set()
            for each in clients:
                each.join()

        self.assertEqual(problems, [])
        self.assertGreater(sum(counts), 0)

    def test_a_client_in_the_middle_of_a_message_is_served_to_its_end(self):
        with Line() as line:
            with socket.create_connection(line.address, support.WAIT) as client:
                client.sendall(b"a message")
                self.assertEqual(receive_exactly(client, 9), b"a message")
                line.restart()  # ends an idle client between two messages
                self.assertEqual(client.recv(1), b"")


if __name__ == "__main__":
    support.main()
