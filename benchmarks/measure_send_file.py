#!/usr/bin/env python3
"""CPU seconds to send a file: async_send_file() on both backends, nginx and socat, in one run.

Every server sends the same file over loopback to the same client, which compares each byte with the
file. The servers take turns, so that what else the machine does hits all of them. Needs a Release
build of the example file_send, nginx and socat (Debian, Ubuntu: nginx-light, socat).

    python3 benchmarks/measure_send_file.py --example build/release/examples/file_send
"""

import argparse
import mmap
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import web_servers

def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port):
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise SystemExit(f"nobody listens on port {port}")


def receive_and_compare(port, speaks_http, content):
    """Returns the seconds; fails unless exactly the content arrives."""
    with connect(port) as stream:
        start = time.monotonic()
        rest = b""
        if speaks_http:
            stream.sendall(b"GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while b"\r\n\r\n" not in rest:
                rest += stream.recv(65536)
            head, rest = rest.split(b"\r\n\r\n", 1)
            assert int(re.search(rb"Content-Length: (\d+)", head)[1]) == len(content), head
        assert content[:len(rest)] == rest
        done = len(rest)
        while done < len(content):
            some = stream.recv(1 << 20)
            assert some, f"the stream ended after {done} bytes"
            assert content[done:done + len(some)] == some, f"a wrong byte behind {done}"
            done += len(some)
        assert stream.recv(1) == b"", "more than the file"
        return time.monotonic() - start


class Sender:
    def __init__(self, name, command, speaks_http=True):
        self.name, self.command, self.speaks_http = name, command, speaks_http

    def measure(self, content):
        port = free_port()
        process = subprocess.Popen(self.command(port), stdout=subprocess.DEVNULL)
        try:
            if self.speaks_http:
                connect(port).close()  # it has started
            before = cpu_seconds(process.pid)
            # socat ends with its only connection: its time is read from the zombie, before wait().
            took = receive_and_compare(port, self.speaks_http, content)
            if not self.speaks_http:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            after = cpu_seconds(process.pid)
            return [now - then for now, then in zip(after, before)] + [took]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", required=True, help="file_send of a Release build")
    parser.add_argument("--size", type=int, default=4 << 30, help="bytes; 4 GiB")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()

    # In memory if possible: the disk should not be measured.
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=parent) as place:
        os.chmod(place, 0o755)  # so that a server that changes its user may read it
        os.mkdir(os.path.join(place, "www"))
        path = os.path.join(place, "www", "file")
        with open(path, "wb") as file:
            left = given.size
            while left:
                left -= file.write(os.urandom(min(left, 16 << 20)))

        senders = [
            Sender(f"async_send_file, {backend}", lambda port, backend=backend: [
                given.example, path, "--port", str(port), "--backend", backend])
            for backend in ("epoll", "io_uring")]
        if web_servers.nginx_program():
            senders.append(Sender("nginx, sendfile on", lambda port: web_servers.COMMANDS["nginx"](
                web_servers.arguments(["nginx", "--place", place, "--port", str(port)]))))
        if shutil.which("socat"):
            for block in ("8192", "262144"):
                senders.append(Sender(f"socat -b {block}", lambda port, block=block: [
                    "socat", "-u", "-b", block, f"OPEN:{path},rdonly",
                    f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr"], speaks_http=False))

        figures = {sender.name: [] for sender in senders}
        with open(path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for _ in range(given.repeats):
                for sender in senders:
                    figures[sender.name].append(sender.measure(content))
        print(f"{given.size} bytes, {given.repeats} alternating rounds, medians; every byte compared\n")
        print("| sender | CPU s | user | system | wall s | CPU s of each round |")
        print("|---|---|---|---|---|---|")
        for name, rounds in figures.items():
            user, system, wall = (statistics.median(column) for column in zip(*rounds))
            total = [one[0] + one[1] for one in rounds]
            each = ", ".join(f"{value:.2f}" for value in total)
            print(f"| {name} | {statistics.median(total):.2f} | {user:.2f} | {system:.2f} | "
                  f"{wall:.2f} | {each} |")


if __name__ == "__main__":
    main()
