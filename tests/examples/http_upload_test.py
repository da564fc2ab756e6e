"""http_upload, with uploads of curl and ones that stop in the middle."""

import os
import signal
import tempfile

import http_support
import support
from http_support import ask, curl, receive_head, wait_until
from support import Server

MIB = 1024 * 1024


def head(name, size, *fields):
    lines = [f"PUT /{name} HTTP/1.1", "Host: localhost", f"Content-Length: {size}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def is_refused(server):
    try:
        server.connect().close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


class http_upload_test(http_support.TestCase):
    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def start(self, *options):
        return Server("http_upload", self.place, *options)

    def put(self, server, name, data, *options):
        return curl(server, f"/{name}", "-X", "PUT", "-H", "Content-Type:", "--data-binary", "@-", *options, data=data)

    def read(self, name):
        with open(os.path.join(self.place, name), "rb") as file:
            return file.read()

    def begin(self, server, name, size, data):
        """An upload of which `data` is sent; returns its client when all of it was received."""
        client = server.connect()
        client.sendall(head(name, size) + data)
        wait_until(lambda: f"{name} {len(data)} {size}\n".encode() in curl(server, "/").body, "the data is received")
        return client

    def test_an_upload_becomes_a_file(self):
        with self.start() as server:
            for size in (0, 1, 100_000, 256 * 1024, 20 * MIB):
                sent = os.urandom(size)
                self.assertEqual(self.put(server, f"file-{size}.bin", sent).status, 201)
                self.assertTrue(self.read(f"file-{size}.bin") == sent)

    def test_a_chunked_upload_becomes_a_file(self):
        sent = os.urandom(3 * MIB)
        with self.start() as server:
            self.assertEqual(self.put(server, "chunks", sent, "-H", "Transfer-Encoding: chunked").status, 201)
        self.assertTrue(self.read("chunks") == sent)

    def test_a_second_upload_replaces_the_first(self):
        with self.start() as server:
            self.assertEqual(self.put(server, "name", b"first").status, 201)
            self.assertEqual(self.put(server, "name", b"second").status, 204)
        self.assertEqual(self.read("name"), b"second")
        self.assertEqual(os.listdir(self.place), ["name"])

    def test_bad_names_are_refused_before_the_body_is_sent(self):
        names = (".hidden", "..%2Fup", "%2e%2e%2fup", "a%2Fb", "a%00b", "a%0Ab", "a%20b", "x" * 101, "%C3%A4", "~")
        with self.start() as server:
            for name in names:
                with self.subTest(name):
                    answer = ask(server, head(name, 5, "Expect: 100-continue"))
                    self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
            for path, status in (("/a/b", 404), ("/../up/x", 400), ("/", 405)):
                self.assertEqual(curl(server, path, "-X", "PUT", "-d", "x").status, status)
        self.assertEqual(os.listdir(self.place), [])

    def test_an_upload_beyond_the_limit_leaves_nothing(self):
        with self.start("--limit", "1000000") as server:
            for framing in ([], ["-H", "Transfer-Encoding: chunked"]):
                self.assertEqual(self.put(server, "large", bytes(1_000_001), *framing).status, 413)
            self.assertEqual(os.listdir(self.place), [])
            self.assertEqual(self.put(server, "large", bytes(1_000_000)).status, 201)

    def test_an_upload_that_ends_early_leaves_nothing(self):
        with self.start() as server:
            client = self.begin(server, "broken", MIB, bytes(512 * 1024))
            self.assertEqual(len(os.listdir(self.place)), 1)
            client.close()
            wait_until(lambda: os.listdir(self.place) == [], "the temporary file is removed")
            self.assertEqual(curl(server, "/").body, b"")

    def test_the_old_file_stays_until_the_new_one_is_complete(self):
        with self.start() as server:
            self.put(server, "name", b"old")
            client = self.begin(server, "name", MIB, bytes(512 * 1024))
            self.assertEqual(self.read("name"), b"old")
            client.sendall(bytes(512 * 1024))
            self.assertTrue(receive_head(client).startswith(b"HTTP/1.1 204 "))
            self.assertEqual(len(self.read("name")), MIB)

    def test_too_many_uploads_are_told_to_come_back(self):
        with self.start("--at-once", "1") as server:
            client = self.begin(server, "first", MIB, bytes(256 * 1024))
            refused = self.put(server, "second", b"x")
            self.assertEqual((refused.status, refused.fields["retry-after"]), (503, "10"))
            client.close()
            wait_until(lambda: curl(server, "/").body == b"", "the first one is gone")
            self.assertEqual(self.put(server, "second", b"x").status, 201)

    def test_a_stop_waits_for_uploads(self):
        with self.start() as server:
            client = self.begin(server, "last", MIB, bytes(256 * 1024))
            os.kill(server.pid, signal.SIGTERM)
            wait_until(lambda: is_refused(server), "the server has begun to stop")
            client.sendall(bytes(768 * 1024))
            answer = receive_head(client)
            self.assertTrue(answer.startswith(b"HTTP/1.1 201 "), answer)
            self.assertIn(b"\r\nConnection: close\r\n", answer)
            self.assertEqual(server.wait(), 0)
        self.assertEqual(len(self.read("last")), MIB)

    def test_a_disk_that_is_full_is_507(self):
        limit = 4 * MIB
        def few_bytes():
            import resource
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # write(2) then fails with EFBIG
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with Server("http_upload", self.place, setup=few_bytes, stderr=support.subprocess.DEVNULL) as server:
            self.assertEqual(self.put(server, "large", bytes(limit + 1)).status, 507)
            wait_until(lambda: os.listdir(self.place) == [], "the temporary file is removed")
            self.assertEqual(self.put(server, "small", bytes(limit)).status, 201)

    def test_a_directory_that_is_missing_is_named(self):
        self.assert_fails(support.run(["http_upload", "/missing", "--port", "0"]),
                          "cannot open /missing: No such file or directory")


if __name__ == "__main__":
    support.main()
