"""metrics, asked by Python's HTTP client and judged by promtool."""

import re
import shutil
import subprocess
import time
import urllib.request

import support
from support import WAIT, Server, receive_exactly


class Metered(Server):
    """Also reads the second line: where the metrics are."""

    def __init__(self, *options):
        super().__init__("metrics", *options)
        line = self._process.stdout.readline()
        self.url = re.fullmatch(r"metrics on (http://\S+)\n", line)[1]

    def scrape(self):
        with urllib.request.urlopen(self.url, timeout=WAIT) as answer:
            kind = answer.headers["Content-Type"]
            assert kind == "text/plain; version=0.0.4", kind
            return answer.read().decode()


class metrics_test(support.TestCase):
    def wait_for(self, server, pattern):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            text = server.scrape()
            if re.search(pattern, text, re.MULTILINE):
                return
            time.sleep(0.01)
        self.fail(f"no {pattern!r} in {text}")

    def test_counts_the_clients_of_the_echo_server(self):
        with Metered("--loops", "2") as server:
            for client in [server.connect() for _ in range(3)]:
                client.sendall(b"hello")
                self.assertEqual(receive_exactly(client, 5), b"hello")
            labels = rf'server="0",address="127\.0\.0\.1:{server.port}"'
            self.wait_for(server, rf"^simplenet_server_accepted_total\{{{labels}\}} 3$")
            self.wait_for(server, r'^simplenet_loop_sockets\{group="echo",loop="1"\} [1-9]')

    def test_prometheus_accepts_the_text(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is missing")
        with Metered() as server:
            checked = subprocess.run(["promtool", "check", "metrics"], input=server.scrape(),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     universal_newlines=True, timeout=WAIT)
            self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    def test_anything_that_is_no_request_gets_no_answer(self):
        with Metered() as server:
            port = int(re.search(r":(\d+)/", server.url)[1])
            stream = support.socket.create_connection(("127.0.0.1", port), WAIT)
            try:
                stream.sendall(b"x" * 10000)
                self.assertEqual(support.receive_all(stream), b"")
            except ConnectionError: # reset, since not all was read
                pass
            stream.close()
            self.assertIn("simplenet_loop_turns_total", server.scrape())


if __name__ == "__main__":
    support.main()
