"""http_routes, asked by curl."""

import json
import threading

import http_support
import support
from http_support import curl
from support import Server

JSON = ["-H", "Content-Type: application/json"]


class http_routes_test(http_support.TestCase):
    def ask(self, server, method, path, value=None, body=None, fields=JSON):
        text = body if body is not None else json.dumps(value).encode()
        more = [*fields, "--data-binary", "@-"] if value is not None or body is not None else []
        answer = curl(server, path, "-X", method, *more, data=text)
        if answer.status == 204:
            return answer.status, None
        return answer.status, json.loads(answer.body) if answer.fields["content-type"] == "application/json" else None

    def test_a_note_is_added_read_changed_and_removed(self):
        with Server("http_routes") as server:
            added = curl(server, "/notes", *JSON, "-d", '{"text": "buy \\u00e4pfel"}')
            self.assertEqual((added.status, added.fields["location"]), (201, "/notes/1"))
            self.assertEqual(json.loads(added.body), {"id": 1, "text": "buy äpfel", "done": False})
            changed = self.ask(server, "PATCH", "/notes/1", {"done": True})
            self.assertEqual(changed, (200, {"id": 1, "text": "buy äpfel", "done": True}))
            self.assertEqual(self.ask(server, "GET", "/notes/1"), changed)
            self.assertEqual(self.ask(server, "GET", "/notes"), (200, [changed[1]]))
            self.assertEqual(self.ask(server, "DELETE", "/notes/1"), (204, None))
            self.assertEqual(self.ask(server, "GET", "/notes"), (200, []))

    def test_notes_that_are_not_there_are_404(self):
        with Server("http_routes") as server:
            for path in ("/notes/1", "/notes/0", "/notes/x", "/notes/1x", "/notes/99999999999", "/notes/-1"):
                for method in ("GET", "DELETE"):
                    self.assertEqual(self.ask(server, method, path), (404, {"error": "there is no such note"}))
                self.assertEqual(self.ask(server, "PATCH", path, {})[0], 404)

    def test_other_methods_are_405(self):
        with Server("http_routes") as server:
            answer = curl(server, "/notes", "-X", "DELETE")

        self.assertEqual(answer.status, 405)
        self.assertEqual(sorted(answer.fields["allow"].split(", ")), ["GET", "HEAD", "OPTIONS", "POST"])

    def test_bodies_that_are_no_note_are_400(self):
        deep = b"[" * 60_000
        bodies = (b"", b"{", b"[]", b"1", b'{"text": 1}', b'{"text": "a", "admin": true}', b'{"done": true}',
                  b'{"text": "\xff"}', b'{"text": "a"} x', deep, b'{"text": ' + deep)
        with Server("http_routes") as server:
            for body in bodies:
                with self.subTest(body[:40]):
                    self.assertEqual(self.ask(server, "POST", "/notes", body=body)[0], 400)
            self.assertEqual(self.ask(server, "GET", "/notes"), (200, []))

    def test_other_types_are_415(self):
        with Server("http_routes") as server:
            for field, status in (("text/plain", 415), ("application/jsonx", 415), ("", 415),
                                  ("Application/JSON; charset=utf-8", 201)):
                answered = self.ask(server, "POST", "/notes", {"text": "a"}, fields=["-H", f"Content-Type: {field}"])
                self.assertEqual(answered[0], status, field)

    def test_a_large_body_is_413(self):
        large = b'{"text": "' + b"x" * 70_000 + b'"}'
        with Server("http_routes") as server:
            for framing in ([], ["-H", "Transfer-Encoding: chunked"]):
                self.assertEqual(self.ask(server, "POST", "/notes", body=large, fields=[*JSON, *framing])[0], 413)

    def test_many_clients_at_once_lose_nothing(self):
        numbers = []

        def add(server):
            for _ in range(5):
                numbers.append(self.ask(server, "POST", "/notes", {"text": "x"})[1]["id"])

        with Server("http_routes") as server:
            threads = [threading.Thread(target=add, args=(server,)) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            count = len(self.ask(server, "GET", "/notes")[1])

        self.assertEqual((sorted(numbers), count), (list(range(1, 41)), 40))


if __name__ == "__main__":
    support.main()
