"""file_send, with curl and Python's HTTP client."""

import hashlib
import http.client
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

import support


class file_send_test(support.TestCase):
    def setUp(self):
        super().setUp()
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)

    def serve(self, content):
        path = os.path.join(self.place.name, "file")
        with open(path, "wb") as file:
            file.write(content)
        return support.Server("file_send", path)

    def get(self, server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=support.WAIT)
        connection.request("GET", "/")
        return connection.getresponse().read()

    def test_every_client_gets_the_file_byte_for_byte(self):
        content = os.urandom(20_000_000)
        with self.serve(content) as server:
            got = []
            clients = [threading.Thread(target=lambda: got.append(self.get(server)))
                       for _ in range(5)]
            for each in clients:
                each.start()
            for each in clients:
                each.join()
        self.assertEqual([hashlib.sha256(each).digest() for each in got],
                         [hashlib.sha256(content).digest()] * 5)

    def test_an_empty_file_is_an_empty_reply(self):
        with self.serve(b"") as server:
            self.assertEqual(self.get(server), b"")

    def test_a_client_that_leaves_does_not_end_the_server(self):
        with self.serve(bytes(50_000_000)) as server:
            for _ in range(5):
                stream = server.connect()
                stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
                self.assertTrue(stream.recv(1000))
                support.reset(stream)
            self.assertEqual(len(self.get(server)), 50_000_000)

    def test_a_signal_ends_it_with_a_client_connected(self):
        with self.serve(bytes(50_000_000)) as server: # checks how the server ended
            stream = server.connect()
            stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
            self.assertTrue(stream.recv(1000))

    @unittest.skipUnless(shutil.which("curl"), "curl is missing")
    def test_curl_gets_it(self):
        content = os.urandom(3_000_000)
        with self.serve(content) as server:
            got = subprocess.run(["curl", "-sS", "--noproxy", "*",
                                  f"http://127.0.0.1:{server.port}/anything"],
                                 stdout=subprocess.PIPE, timeout=support.LIMIT, check=True).stdout
        self.assertEqual(got, content)

    def test_a_client_that_sends_more_than_a_request_gets_the_whole_file(self):
        content = os.urandom(100_000)
        body = bytes(4_000_000)
        with self.serve(content) as server:
            for _ in range(5):
                stream = server.connect()
                stream.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body))
                stream.sendall(body)
                answer = support.receive_all(stream)
                stream.close()
                self.assertEqual(answer.split(b"\r\n\r\n", 1)[1], content)

    def test_files_that_are_not_regular_are_reported(self):
        os.mkfifo(os.path.join(self.place.name, "fifo"))
        for name in (".", "fifo"):
            self.assert_fails(support.run(["file_send", os.path.join(self.place.name, name)]),
                              "not a regular file")

    def test_a_missing_file_is_reported(self):
        self.assert_fails(support.run(["file_send", self.place.name + "/none"]),
                          "No such file or directory")


if __name__ == "__main__":
    support.main()
