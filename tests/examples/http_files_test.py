"""http_files, asked by curl: conditions, ranges, and paths that lead elsewhere."""

import gzip
import os
import tempfile

import http_support
import support
from http_support import curl
from support import Server

TEXT = b"0123456789" * 10_000


class http_files_test(http_support.TestCase):
    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.outside = os.path.join(place.name, "secret.txt")
        self.place = os.path.join(place.name, "served")
        os.makedirs(os.path.join(self.place, "folder"))
        self.write("../secret.txt", b"secret")
        self.write("index.html", b"<p>front page")
        self.write("text.txt", TEXT)
        self.write("folder/a b&c.html", b"<p>page")
        self.write(".hidden", b"hidden")

    def write(self, name, data):
        with open(os.path.join(self.place, name), "wb") as file:
            file.write(data)

    def start(self, *options):
        return Server("http_files", self.place, *options)

    def test_files_are_served_with_their_types(self):
        with self.start() as server:
            for path, body, kind in (("/", b"<p>front page", "text/html"), ("/text.txt", TEXT, "text/plain"),
                                     ("/folder/a%20b%26c.html", b"<p>page", "text/html")):
                answer = curl(server, path)
                self.assertEqual((answer.status, answer.body == body), (200, True), path)
                self.assertTrue(answer.fields["content-type"].startswith(kind))
                self.assertEqual(answer.fields["cache-control"], "max-age=60")
                self.assertEqual(curl(server, path, "--head").fields["content-length"], str(len(body)))

    def test_what_has_not_changed_is_not_sent_again(self):
        with self.start() as server:
            fields = curl(server, "/text.txt").fields
            for condition in (f"If-None-Match: {fields['etag']}", f'If-None-Match: "other", {fields["etag"]}',
                              f"If-Modified-Since: {fields['last-modified']}"):
                answer = curl(server, "/text.txt", "-H", condition)
                self.assertEqual((answer.status, answer.body), (304, b""), condition)
            for condition, status in (('If-None-Match: "other"', 200), ('If-Match: "other"', 412)):
                self.assertEqual(curl(server, "/text.txt", "-H", condition).status, status, condition)

    def test_parts_are_served(self):
        size = len(TEXT)
        with self.start() as server:
            for wanted, begin, end in (("0-0", 0, 1), ("5-14", 5, 15), (f"{size - 3}-", size - 3, size),
                                       ("-7", size - 7, size), (f"10-{size * 2}", 10, size)):
                answer = curl(server, "/text.txt", "-r", wanted)
                self.assertEqual((answer.status, answer.body == TEXT[begin:end]), (206, True), wanted)
                self.assertEqual(answer.fields["content-range"], f"bytes {begin}-{end - 1}/{size}")
            beyond = curl(server, "/text.txt", "-r", f"{size}-")
            self.assertEqual((beyond.status, beyond.fields["content-range"]), (416, f"bytes */{size}"))
            several = curl(server, "/text.txt", "-r", "0-4,10-14")
            self.assertEqual(several.status, 206)
            self.assertTrue(several.fields["content-type"].startswith("multipart/byteranges; boundary="))
            self.assertEqual(several.body.count(b"01234\r\n"), 2)

    def test_a_download_continues_only_if_the_file_is_the_same(self):
        def continues(server):
            tag = curl(server, "/text.txt", "--head").fields["etag"].removeprefix("W/")
            return curl(server, "/text.txt", "-r", "50-", "-H", f"If-Range: {tag}").status == 206

        with self.start() as server:
            # The tag of a file that has just changed is weak: it may change again in the same tick of the clock.
            http_support.wait_until(lambda: continues(server), "the tag is strong")
            whole = curl(server, "/text.txt", "-r", "50-", "-H", 'If-Range: "other"')
            self.assertEqual((whole.status, whole.body == TEXT), (200, True))

    def test_nothing_outside_of_the_directory_is_served(self):
        os.symlink(self.outside, os.path.join(self.place, "link.txt"))
        os.symlink("../secret.txt", os.path.join(self.place, "relative.txt"))
        os.symlink("/", os.path.join(self.place, "root"))
        paths = ("/../secret.txt", "/folder/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt",
                 "/%2e%2e%2fsecret.txt", "/folder/%2e%2e/%2e%2e/secret.txt", "/..%5csecret.txt", "/....//secret.txt",
                 "/%252e%252e/secret.txt", "/link.txt", "/relative.txt", "/root" + self.outside,
                 "//" + self.outside, "/text.txt%00.html", "/.hidden", "/folder/../.hidden", "/%2ehidden")
        with self.start("--listing") as server:
            for path in paths:
                answer = curl(server, path)
                self.assertIn(answer.status, (400, 404), path)
                self.assertNotIn(b"secret\n", answer.body + b"\n")

    def test_a_link_within_the_directory_is_followed(self):
        os.symlink("../text.txt", os.path.join(self.place, "folder", "link.txt"))
        with self.start() as server:
            self.assertEqual(curl(server, "/folder/link.txt").status, 200)

    def test_a_directory_is_listed_only_if_that_was_asked_for(self):
        with self.start() as server:
            self.assertEqual(curl(server, "/folder/").status, 404)
        with self.start("--listing") as server:
            answer = curl(server, "/folder/")
            redirect = curl(server, "/folder")

        self.assertEqual(answer.status, 200)
        self.assertIn(b'href="./a%20b%26c.html"', answer.body)
        self.assertIn(b"a b&amp;c.html", answer.body)
        self.assertEqual((redirect.status // 100, redirect.fields["location"]), (3, "/folder/"))

    def test_a_compressed_file_is_sent_to_those_who_accept_it(self):
        self.write("text.txt.gz", gzip.compress(TEXT))
        with self.start() as server:
            plain = curl(server, "/text.txt")
            packed = curl(server, "/text.txt", "-H", "Accept-Encoding: gzip")

        self.assertEqual((plain.fields.get("content-encoding"), plain.body == TEXT), (None, True))
        self.assertEqual(packed.fields["content-encoding"], "gzip")
        self.assertTrue(gzip.decompress(packed.body) == TEXT)
        for answer in (plain, packed):
            self.assertEqual(answer.fields["vary"].lower(), "accept-encoding")
        self.assertNotEqual(plain.fields["etag"], packed.fields["etag"])

    def test_other_methods_are_405(self):
        with self.start() as server:
            answer = curl(server, "/text.txt", "-X", "PUT", "-d", "x")

        self.assertEqual(answer.status, 405)

    def test_a_changed_file_is_noticed(self):
        with self.start() as server:
            self.assertEqual(curl(server, "/").body, b"<p>front page")
            self.write("index.html", b"<p>another page")
            http_support.wait_until(lambda: curl(server, "/").body == b"<p>another page", "the new page is served")

    def test_a_directory_that_is_missing_is_named(self):
        self.assert_fails(support.run(["http_files", "/missing", "--port", "0"]),
                          "cannot open /missing: No such file or directory")


if __name__ == "__main__":
    support.main()
