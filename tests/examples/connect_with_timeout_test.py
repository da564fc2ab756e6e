"""connect_with_timeout, against listeners that do not use the library."""

import time

import support
from support import PythonServer, Silent, refused_port, with_backend


class connect_with_timeout_test(support.TestCase):
    def connect(self, port, *options):
        return support.run(with_backend(["connect_with_timeout", "127.0.0.1", port, *options]))

    def test_it_connects(self):
        with PythonServer(lambda stream: None) as server:
            ended = self.connect(server.port)

        self.assertEqual((ended.returncode, ended.stdout, ended.stderr),
                         (0, f"connected to 127.0.0.1:{server.port}\n", ""))

    def test_it_gives_up_at_the_timeout_and_not_earlier(self):
        with Silent() as server:
            start = time.monotonic()
            ended = self.connect(server.port, "--timeout-ms", 300)
            took = time.monotonic() - start

        self.assert_fails(ended, f"127.0.0.1:{server.port} did not answer within 300 ms")
        self.assertGreaterEqual(took, 0.3)

    def test_it_reports_refusal_at_once(self):
        holder, port = refused_port()
        with holder:
            # Would hang until the test's own limit if it waited for the timeout.
            ended = self.connect(port, "--timeout-ms", 3_600_000)

        self.assert_fails(ended, f"cannot connect to 127.0.0.1:{port}: Connection refused")


if __name__ == "__main__":
    support.main()
