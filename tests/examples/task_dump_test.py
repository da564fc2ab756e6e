"""task_dump, with clients and signals that do not come from the library."""

import os
import re
import signal
import tempfile
import time

import support
from support import WAIT, Server, receive_exactly


class task_dump_test(support.TestCase):
    def wait_for(self, log, pattern):
        """Returns the standard error of a server once it contains `pattern`."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            log.seek(0)
            text = log.read()
            if re.search(pattern, text):
                return text
            time.sleep(0.01)
        self.fail(f"no {pattern!r} in {text!r}")

    def test_a_client_sees_every_task_once(self):
        with Server("task_dump") as server, server.connect() as first, \
                server.connect() as second:
            second.sendall(b"hello")
            receive_exactly(second, len(b"dump or block?\n"))
            first.sendall(b"dump")
            text = ""
            while len(re.findall(r" client 127", text)) < 2 or "task_dump.cpp" not in text:
                text += first.recv(65536).decode()

        self.assertRegex(text, rf"{server.backend} loop: 4 tasks")
        self.assertRegex(text, r"#\d+ main, .* s: join of a group of 2")
        self.assertRegex(text, r"\n    #\d+ listener, .* s: accept on fd \d+, "
                               rf"127\.0\.0\.1:{server.port}\n")
        self.assertEqual(len(re.findall(r" client 127", text)), 2, text)

    def test_a_signal_prints_the_tasks_to_standard_error(self):
        with tempfile.TemporaryFile("w+") as log, \
                Server("task_dump", stderr=log) as server, server.connect() as client:
            client.sendall(b"hello")
            receive_exactly(client, len(b"dump or block?\n"))
            os.kill(server.pid, signal.SIGUSR1)
            port = client.getsockname()[1]
            self.wait_for(log, rf"client 127\.0\.0\.1:{port}, .* s: receive on fd \d+, "
                               rf"127\.0\.0\.1:{server.port} <-> 127\.0\.0\.1:{port}\n"
                               r"\s+at .*task_dump\.cpp:\d+\n")
            client.sendall(b"hello")  # it continues
            receive_exactly(client, len(b"dump or block?\n"))

    def test_a_task_that_blocks_the_loop_is_reported(self):
        with tempfile.TemporaryFile("w+") as log, \
                Server("task_dump", stderr=log) as server, server.connect() as client:
            client.sendall(b"block")
            receive_exactly(client, len(b"blocked\n"))
            port = client.getsockname()[1]
            self.wait_for(log, rf"a turn of an event loop has taken 0\.\d+ s; task #\d+ "
                               rf"client 127\.0\.0\.1:{port}\n")


if __name__ == "__main__":
    support.main()
