"""Clients and backends that speak nonsense: the program goes on, and serves whoever asks properly.

Everything is made from valid messages by a seeded generator, so that much of it gets far. SIMPLENET_SEED chooses other
nonsense, SIMPLENET_NONSENSE how many requests there are.
"""

import os
import random
import re
import socket
import struct
import threading

import httpd_support as support
from httpd_support import get

SEED = int(os.environ.get("SIMPLENET_SEED", "1"))
REQUESTS = int(os.environ.get("SIMPLENET_NONSENSE", "1000"))

REQUESTS_OF_CLIENTS = [
    b"GET /%s HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /%s?a=b#c HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1,3-\r\nIf-None-Match: \"x\"\r\n\r\n",
    b"POST /%s HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\nhello world",
    b"POST /%s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: 1\r\n\r\n",
    b"PUT /%s HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"HEAD /%s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"GET /%s HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x85abcd\x09\x07\x0f\x08\x0e",
    b"OPTIONS * HTTP/1.1\r\nHost: h\r\nX-%s: y\r\n\r\n",
]
PATHS = [b"", b"index.html", b"proxied/x", b"proxied/../x", b"a.php", b"a.php/more", b"%2e%2e/x", b"secret/x", b"none"]

ANSWERS_OVER_HTTP = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nX: y\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x81\x05hello",
    b"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nSet-Cookie: a=b\r\nContent-Length: 200000\r\n\r\n"
    + b"x" * 200000,
]

WORDS = [b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"Content-Length: 7\r\n", b"Transfer-Encoding: chunked\r\n", b"\xff",
         b"Connection: close\r\n", b"99999999999999999999", b"0\r\n\r\n", b"Host: ..\r\n", b"%00", b"A" * 9000]


def record(kind, content, request=1):
    padding = -len(content) % 8
    return struct.pack(">BBHHBx", 1, kind, request, len(content), padding) + content + bytes(padding)


ANSWERS_OVER_FASTCGI = [
    record(6, b"Content-Type: text/plain\r\n\r\nhello") + record(6, b"") + record(3, bytes(8)),
    record(6, b"Status: 404 Not here\r\nContent-Length: 2\r\n\r\n") + record(6, b"no") + record(3, bytes(8)),
    record(7, b"PHP Warning: something\n") + record(6, b"Location: /elsewhere\r\n\r\n") + record(3, bytes(8)),
    b"".join([record(6, b"X: y\r\n\r\n"), *(record(6, b"z" * 30000) for _ in range(9)), record(3, bytes(8))]),
    # Of nginx: it must lead to nothing behind the password.
    record(6, b"X-Accel-Redirect: /secret\r\n\r\n") + record(3, struct.pack(">IBxxx", 1, 2)),
]


def mangled(message, chance):
    """A message like this one; often the same."""
    made = bytearray(message)
    while chance.random() < 0.6:
        at = chance.randrange(len(made) + 1)
        match chance.randrange(6):
            case 0:
                made[at:at + 1] = bytes([chance.randrange(256)])
            case 1:
                del made[at:at + chance.randrange(1, 9)]
            case 2:
                made[at:at] = made[at:at + chance.randrange(1, 99)]
            case 3:
                made[at:at] = chance.choice(WORDS)
            case 4:
                del made[at:]
            case _:
                made += message
    return bytes(made)


def send(peer, message, chance):
    """In pieces. Whether the other side still listens."""
    try:
        while message:
            size = chance.choice([1, 7, 100, len(message), len(message)])
            peer.sendall(message[:size])
            message = message[size:] if chance.random() < 0.99 else b""
        return True
    except OSError:
        return False


def leave(peer, chance):
    """Ends a connection in one of the ways that there are."""
    try:
        if chance.random() < 0.3:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        elif chance.random() < 0.5:
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65536):
                pass
    except OSError:
        pass
    peer.close()


class Backend:
    """Answers each connection with nonsense, once it has got something; with sense while `honest`."""

    def __init__(self, answers, seed):
        self.honest = False
        self._answers = answers
        self._seed = seed
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._listener.close()

    def _serve(self):
        number = 0
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            number += 1
            chance = random.Random(f"{self._seed} {number}")
            threading.Thread(target=self._answer, args=(peer, chance), daemon=True).start()

    def _answer(self, peer, chance):
        peer.settimeout(1)
        try:
            while True:
                asked = peer.recv(65536)
                if not asked:
                    break
                if self.honest:
                    peer.sendall(self._answers[0])
                    break
                if chance.random() < 0.1 or not send(peer, mangled(chance.choice(self._answers), chance), chance):
                    break
        except OSError:
            pass
        leave(peer, chance)


class nonsense_test(support.TestCase):
    def ask(self, port, number):
        chance = random.Random(f"{SEED} client {number}")
        with socket.create_connection(("127.0.0.1", port), timeout=support.LIMIT) as client:
            client.settimeout(0.2)
            for _ in range(chance.choice([1, 1, 1, 2, 5])):
                asked = chance.choice(REQUESTS_OF_CLIENTS) % chance.choice(PATHS)
                if not send(client, mangled(asked, chance), chance):
                    break
                try:
                    if not client.recv(65536):
                        break
                except OSError:
                    pass  # it waits for the rest
            leave(client, chance)

    def test_nonsense_from_both_sides_stops_nobody(self):
        http = Backend(ANSWERS_OVER_HTTP, f"{SEED} http")
        fastcgi = Backend(ANSWERS_OVER_FASTCGI, f"{SEED} fastcgi")
        self.addCleanup(http.close)
        self.addCleanup(fastcgi.close)
        self.write("www/a.php", "<?php")
        self.write("users", "a:$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n")
        self.configure(site=f"""
compress = {{}}
[[site.route]]
match = "/proxied/*"
proxy = "127.0.0.1:{http.port}"
[[site.route]]
match = "*.php"
fastcgi = "127.0.0.1:{fastcgi.port}"
path_info = true
[[site.route]]
match = "/secret/*"
auth = {{ file = "users" }}
[log]
access = "access.log"
""")
        with self.start() as server:
            threads = [threading.Thread(target=lambda first=each: [self.ask(server.port(), number) for number in
                                                                   range(first, REQUESTS, 8)]) for each in range(8)]
            for each in threads:
                each.start()
            while any(each.is_alive() for each in threads):
                self.assertEqual(get(server.port())[:2], (200, "front page"))
            http.honest = fastcgi.honest = True
            # A backend that has failed is left out for a while.
            for path in ("/proxied/x", "/a.php"):
                support.wait_until(lambda path=path: get(server.port(), path)[:2] == (200, "hello"), path, server.lines)
        # It has been everywhere.
        seen = set(re.findall(r'" (\d{3}) ', self.read("access.log")))
        self.assertLessEqual({"200", "204", "304", "400", "401", "404", "502"}, seen)
        self.assertFalse([line for line in server.lines if "Sanitizer" in line or "runtime error" in line])


if __name__ == "__main__":
    support.main()
