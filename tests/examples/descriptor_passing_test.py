"""descriptor_passing, against Python's send_fds and recv_fds."""

import array
import os
import signal
import socket
import subprocess
import tempfile
import threading

import support


def send_descriptors(stream, text, descriptors):
    stream.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                             array.array("i", descriptors))])


def receive_descriptors(stream):
    text, ancillary, _, _ = stream.recvmsg(1024, socket.CMSG_SPACE(253 * 4))
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data[:len(data) // 4 * 4])
    return text, list(descriptors)


class descriptor_passing_test(support.TestCase):
    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.socket = os.path.join(self.place, "socket")
        self.files = os.path.join(self.place, "files")
        os.mkdir(self.files)
        with open(os.path.join(self.files, "greeting"), "w") as file:
            file.write("hello\n")
        with open(os.path.join(self.place, "secret"), "w") as file:
            file.write("not for you\n")

    def serve(self):
        server = subprocess.Popen(
            support.with_backend([support.program("descriptor_passing"), "serve", self.files,
                                  self.socket]), stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, server)
        self.assertEqual(server.stdout.readline(), "listening\n")
        return server

    def end(self, server):
        server.send_signal(signal.SIGTERM)
        status = server.wait(support.WAIT)
        server.stdout.close()
        self.assertIn(status, (0, -signal.SIGTERM))

    def fetch(self, name):
        return support.run(support.with_backend(["descriptor_passing", "fetch", self.socket, name]))

    def test_python_gets_an_open_file(self):
        self.serve()
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(support.WAIT)
            stream.connect(self.socket)
            for _ in range(100):
                stream.sendall(b"greeting\n")
                text, descriptors = receive_descriptors(stream)
                self.assertEqual((text, len(descriptors)), (b"here it is\n", 1))
                with os.fdopen(descriptors[0]) as file:
                    self.assertEqual(file.read(), "hello\n")

    def test_files_outside_the_directory_are_refused(self):
        self.serve()
        os.symlink("../secret", os.path.join(self.files, "link"))
        os.mkdir(os.path.join(self.files, "folder"))
        os.mkfifo(os.path.join(self.files, "fifo"))
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(support.WAIT)
            stream.connect(self.socket)
            for name in (b"../secret", b"..", b".", b"", b"link", b"folder", b"fifo", b"none",
                         b"/etc/passwd"):
                stream.sendall(name + b"\n")
                self.assertEqual(receive_descriptors(stream), (b"no such file\n", []))

    def test_a_request_may_arrive_in_pieces(self):
        self.serve()
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(support.WAIT)
            stream.connect(self.socket)
            stream.sendall(b"gree")
            stream.sendall(b"ting\nnone\ngreeting\n")
            got = b""
            while got.count(b"\n") < 3:
                text, descriptors = receive_descriptors(stream)
                got += text
                for each in descriptors:
                    os.close(each)
            self.assertEqual(got, b"here it is\nno such file\nhere it is\n")

    def test_a_signal_ends_it_with_clients_connected(self):
        server = self.serve()
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(support.WAIT)
            stream.connect(self.socket)
            stream.sendall(b"none\n")
            receive_descriptors(stream)
            server.send_signal(signal.SIGTERM)
            self.assertIn(server.wait(support.WAIT), (0, -signal.SIGTERM))
        self.assertFalse(os.path.exists(self.socket))

    def test_a_client_that_sends_descriptors_costs_the_server_none(self):
        server = self.serve()
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(support.WAIT)
            stream.connect(self.socket)
            stream.sendall(b"none\n")
            receive_descriptors(stream)
            before = len(os.listdir(f"/proc/{server.pid}/fd"))
            for _ in range(20):
                send_descriptors(stream, b"none\n", [0] * 100)
                self.assertEqual(receive_descriptors(stream), (b"no such file\n", []))
            self.assertEqual(len(os.listdir(f"/proc/{server.pid}/fd")), before)

    def test_it_fetches_from_another_instance(self):
        self.serve()
        self.assertEqual(self.fetch("greeting").stdout, "hello\n")
        self.assert_fails(self.fetch("none"), "none: No such file or directory")

    def test_a_full_disk_is_a_failure(self):
        self.serve()
        with open(os.path.join(self.files, "large"), "wb") as file:
            file.write(bytes(1_000_000))
        for name in ("greeting", "large"):
            ended = support.run_on_a_full_disk(
                support.with_backend(["descriptor_passing", "fetch", self.socket, name]))
            self.assertEqual((ended.returncode, ended.stderr),
                             (1, f"{name}: No space left on device\n"))

    def test_it_fetches_from_python(self):
        with socket.socket(socket.AF_UNIX) as listener, \
                open(os.path.join(self.files, "greeting")) as file:
            listener.bind(self.socket)
            listener.listen()

            def answer(count):
                stream, _ = listener.accept()
                with stream:
                    stream.recv(100)
                    send_descriptors(stream, b"yours\n", [file.fileno()] * count)

            ended = []
            for count in (1, 2):
                server = threading.Thread(target=answer, args=(count,))
                server.start()
                ended.append(self.fetch("anything"))
                server.join()
        self.assertEqual(ended[0].stdout, "hello\n")
        self.assert_fails(ended[1], "limit")


if __name__ == "__main__":
    support.main()
