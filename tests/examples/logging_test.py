"""logging: what its loops tell arrives in spdlog."""

import re
import tempfile
import time

import support
from support import WAIT, Server, receive_exactly


class logging_test(support.TestCase):
    def wait_for(self, log, pattern):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            log.seek(0)
            text = log.read()
            if re.search(pattern, text):
                return
            time.sleep(0.01)
        self.fail(f"no {pattern!r} in {text!r}")

    def test_refused_connections_are_warnings(self):
        with tempfile.TemporaryFile("w+") as log:
            with Server("logging", "--most", "1", stderr=log) as server:
                client = server.connect()
                client.sendall(b"hello")
                self.assertEqual(receive_exactly(client, 5), b"hello")
                try:
                    server.connect()
                except OSError: # reset already
                    pass
                self.wait_for(log, rf"\[warning\] the server at 127\.0\.0\.1:{server.port} refuses a "
                                   r"connection from 127\.0\.0\.1:\d+: the server is full\n")
            self.wait_for(log, r"\[info\] \d+ connections ended by themselves, \d+ were stopped\n")


if __name__ == "__main__":
    support.main()
