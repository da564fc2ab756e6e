"""multicore_echo, against clients that do not use the library."""

import contextlib
import os
import signal
import socket
import time

import support
from support import Server, receive_all, receive_exactly


def number_of_loops(server):
    names = []
    for each in os.listdir(f"/proc/{server.pid}/task"):
        with open(f"/proc/{server.pid}/task/{each}/comm", encoding="ascii") as file:
            names.append(file.read().strip())
    return len([each for each in names if each.startswith("simplenet-")])


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def new_control_group():
    """A control group whose CPU time can be limited, of version 2 or 1; None if this process may not make one."""
    for mounted in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"):
        group = os.path.join(mounted, f"simplenet-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        if any(os.path.exists(os.path.join(group, each)) for each in ("cpu.max", "cpu.cfs_quota_us")):
            return group
        os.rmdir(group)
    return None


@contextlib.contextmanager
def control_group(quota):
    """Yields a function for `setup`, which puts a process into a group that may use `quota` CPUs; None: not here."""
    group = new_control_group()
    if group is None:
        yield None
        return
    try:
        if os.path.exists(os.path.join(group, "cpu.max")):
            write(os.path.join(group, "cpu.max"), f"{quota * 100000} 100000")
        else:
            write(os.path.join(group, "cpu.cfs_period_us"), "100000")
            write(os.path.join(group, "cpu.cfs_quota_us"), f"{quota * 100000}")
        yield lambda: write(os.path.join(group, "cgroup.procs"), str(os.getpid()))
    finally:
        limit = time.monotonic() + support.WAIT
        while True:
            try:
                os.rmdir(group)  # when the last process has left
                break
            except OSError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.01)


class multicore_echo_test(support.TestCase):
    def test_many_clients_at_once_get_their_own_bytes_back(self):
        with Server("multicore_echo") as server:
            self.assert_echoes(server, 50000)

    def test_it_runs_a_loop_for_each_processor_it_may_use(self):
        with Server("multicore_echo") as server:
            loops = number_of_loops(server)
        self.assertGreaterEqual(loops, 1)
        self.assertLessEqual(loops, len(os.sched_getaffinity(0)))

    def test_a_control_group_of_one_processor_gives_one_loop(self):
        with Server("multicore_echo") as server:
            if number_of_loops(server) < 2:
                self.skipTest("this process may use only one processor anyway")
        with control_group(1) as enter:
            if enter is None:
                self.skipTest("no control group with a limit can be made here")
            with Server("multicore_echo", setup=enter) as server:
                self.assertEqual(number_of_loops(server), 1)
                with server.connect() as client:
                    client.sendall(b"hello")
                    self.assertEqual(receive_exactly(client, 5), b"hello")
        with control_group(2) as enter, Server("multicore_echo", setup=enter) as server:
            self.assertEqual(number_of_loops(server), 2)

    def test_a_signal_lets_the_clients_finish(self):
        with Server("multicore_echo") as server:
            client = server.connect()
            client.sendall(b"before")
            self.assertEqual(receive_exactly(client, 6), b"before")
            os.kill(server.pid, signal.SIGTERM)
            client.sendall(b"after")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(receive_all(client), b"after")
            self.assertEqual(server.wait(), 0)

    def test_a_port_in_use_is_one_line(self):
        self.assert_reports_a_port_in_use(
            "multicore_echo", "^cannot serve: Address already in use$")


if __name__ == "__main__":
    support.main()
