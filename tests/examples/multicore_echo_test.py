"""multicore_echo, against clients that do not use the library."""

import os
import signal
import socket
import threading

import support
from support import Server, receive_all, receive_exactly


class multicore_echo_test(support.TestCase):
    def test_many_clients_at_once_get_their_own_bytes_back(self):
        problems = []

        def talk(server):
            sent = os.urandom(50000)
            with socket.create_connection((server.host, server.port), support.WAIT) as client:
                sender = threading.Thread(target=client.sendall, args=(sent,))
                sender.start()
                if receive_exactly(client, len(sent)) != sent:
                    problems.append("different bytes came back")
                sender.join()

        with Server("multicore_echo") as server:
            clients = [threading.Thread(target=talk, args=(server,)) for _ in range(20)]
            for each in clients:
                each.start()
            for each in clients:
                each.join()
        self.assertEqual(problems, [])

    def test_it_runs_a_loop_for_each_processor_it_may_use(self):
        with Server("multicore_echo") as server:
            names = []
            for each in os.listdir(f"/proc/{server.pid}/task"):
                with open(f"/proc/{server.pid}/task/{each}/comm", encoding="ascii") as file:
                    names.append(file.read().strip())
        loops = [each for each in names if each.startswith("simplenet-")]
        self.assertGreaterEqual(len(loops), 1)
        self.assertLessEqual(len(loops), len(os.sched_getaffinity(0)))

    def test_a_signal_lets_the_clients_finish(self):
        with Server("multicore_echo") as server:
            client = server.connect()
            client.sendall(b"before")
            self.assertEqual(receive_exactly(client, 6), b"before")
            os.kill(server.pid, signal.SIGTERM)
            client.sendall(b"after")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(receive_all(client), b"after")
            self.assertEqual(server._process.wait(support.WAIT), 0)

    def test_a_port_in_use_is_one_line(self):
        with Server("multicore_echo") as server:
            second = support.run(support.with_backend(
                ["multicore_echo", "--port", server.port]))
        self.assertEqual(second.returncode, 1)
        self.assertEqual(second.stderr, "cannot serve: Address already in use\n")


if __name__ == "__main__":
    support.main()
