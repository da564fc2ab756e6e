"""The reaction of every example to wrong arguments and to addresses that cannot be used."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import support

SERVERS = ["echo_server", "chat_server"]
CLIENTS = ["echo_client", "connect_with_timeout", "blocking_client"]
ALL = [*SERVERS, *CLIENTS, "backend_switch", "behind_haproxy", "chat_many_rooms", "cpu_offload",
       "descriptor_passing", "file_send", "graceful_shutdown", "http_get", "line_chat", "metrics",
       "muduo_style_echo", "multicore_echo", "parallel_fetch", "port_forward", "producer_consumer",
       "reconnecting_client", "rolling_restart", "task_dump", "udp_echo", "watch_files"]
TLS = ["https_get", "mtls", "tls_client", "tls_echo_server", "tls_terminator"]  # if the build has TLS
HTTP = ["http_echo_server", "http_fetch", "http_files", "http_hello", "http_routes", "http_stream",
        "http_upload", "websocket_chat"]  # likewise


class arguments_test(support.TestCase):
    def assert_usage(self, command, reason):
        with self.subTest(" ".join(command)):
            ended = support.run(command)

            self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
            self.assertRegex(ended.stderr, reason)
            self.assertIn(f"\nUsage: {command[0]}", ended.stderr)

    def test_help_prints_the_usage(self):
        for name in [*ALL, *(name for name in TLS + HTTP if os.path.exists(support.program(name)))]:
            for word in ("--help", "-h"):
                ended = support.run([name, word])

                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertTrue(ended.stdout.startswith(f"Usage: {name}"))

    def test_a_port_is_a_number_in_range(self):
        for port in ("70000", "-1", "port", "80x", "", " 80", "+80", "0x50", "1e3"):
            for name in SERVERS:
                self.assert_usage([name, "--port", port], "bad port")
            for name in CLIENTS:
                # A word that begins with a dash is always an option.
                self.assert_usage([name, "127.0.0.1", port], "bad port|unknown option")
        for name in CLIENTS:
            self.assert_usage([name, "127.0.0.1", "0"], "bad port")

    def test_an_address_is_an_ip_address(self):
        for address in ("localhost", "127.0.0.1.5", "127.1", "256.0.0.1", "::g", "", "[::1]"):
            for name in SERVERS:
                self.assert_usage([name, "--address", address], "bad address")
            for name in CLIENTS:
                self.assert_usage([name, address, "80"], "bad address")

    def test_unknown_words_and_options_are_refused(self):
        for name in (*SERVERS, "backend_switch"):
            self.assert_usage([name, "surprise"], "surprise")
            self.assert_usage([name, "--surprise", "x"], "--surprise")
        for name in CLIENTS:
            self.assert_usage([name, "127.0.0.1", "80", "text", "surprise"], "text|surprise")
            self.assert_usage([name, "--surprise", "127.0.0.1", "80"], "--surprise")

    def test_missing_and_wrong_values_are_named(self):
        for name in CLIENTS:
            self.assert_usage([name], "ADDRESS is missing")
            self.assert_usage([name, "127.0.0.1"], "PORT is missing")
        for name in (*SERVERS, "echo_client", "connect_with_timeout"):
            self.assert_usage([name, "--backend"], "--backend needs a value")
            self.assert_usage([name, "--backend", "kqueue"], "bad backend")
        for option in ("--round-trips", "--size"):
            for value in ("0", "-5", "many", "99999999999999999999999"):
                self.assert_usage(["echo_client", "127.0.0.1", "80", option, value], "bad .*size|"
                                  "bad number of round trips")
        for value in ("0", "soon", "5000000000"):
            self.assert_usage(["connect_with_timeout", "127.0.0.1", "80", "--timeout-ms", value],
                              "bad time-out")

    def test_a_server_without_standard_output_still_serves(self):
        for name in SERVERS:
            holder, port = support.refused_port()
            with holder:
                command = [support.program(name), "--port", str(port)]
                server = subprocess.Popen(["sh", "-c", 'exec "$@" >&-', "sh", *command])
                try:
                    self.assertIsNone(self.wait_for_port(port, server), name)
                    self.wait_for_signals(server)
                finally:
                    server.terminate()
                    self.assertEqual(server.wait(support.WAIT), 0)

    def wait_for_signals(self, server):
        """Waits until SIGTERM would not kill the server, which may be later than it listens."""
        bit = 1 << (signal.SIGTERM - 1)
        while server.poll() is None:
            with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
                masks = re.findall(r"^Sig(?:Blk|Cgt):\s*(\w+)", status.read(), re.MULTILINE)
            if any(int(mask, 16) & bit for mask in masks):
                return
            time.sleep(0.01)

    def wait_for_port(self, port, server):
        """The status of a server that ended before a client could connect to it; None if it lives."""
        while server.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), support.WAIT).close()
                return server.poll()
            except ConnectionRefusedError:
                time.sleep(0.01)
        return server.poll()

    def test_an_address_in_use_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            for name in SERVERS:
                self.assert_fails(support.run([name, "--port", port]),
                                  f"cannot listen on 127.0.0.1:{port}: Address already in use")

    def test_an_address_of_another_machine_is_an_error(self):
        for name in SERVERS:
            self.assert_fails(support.run([name, "--port", "0", "--address", "192.0.2.1"]),
                              "cannot listen on 192.0.2.1:0: Cannot assign requested address")

    def test_an_unreachable_network_is_an_error(self):
        unshare = shutil.which("unshare")
        isolated = [unshare, "--user", "--map-root-user", "--net"]
        if not unshare or subprocess.run([*isolated, "true"], stderr=subprocess.DEVNULL,
                                         check=False).returncode != 0:
            self.skipTest("no network namespaces here")
        for name in CLIENTS:
            ended = subprocess.run([*isolated, support.program(name), "192.0.2.1", "80"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   universal_newlines=True, timeout=support.LIMIT, check=False)
            self.assert_fails(ended, "192.0.2.1:80: Network is unreachable")


if __name__ == "__main__":
    support.main()
