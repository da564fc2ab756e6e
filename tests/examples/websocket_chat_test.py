"""websocket_chat, with Python's websockets, a client written by hand, and two tabs of Chromium."""

import asyncio
import os
import signal
import sys
import time
import unittest

import http_support
import support
from http_support import curl
from support import Server
from websocket_support import CHROMIUM, CLOSE, PING, PONG, TEXT, Browser, RawClient

# Debian's package, also for a Python that is not Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import websockets
    import websockets.exceptions
except ImportError:
    websockets = None


class Room(Server):
    """Its guests leave before it ends, since they do not reply when it closes their connections."""

    def __init__(self):
        super().__init__("websocket_chat")
        self._guests = []

    def __exit__(self, *how):
        for each in self._guests:
            each.socket.close()
        super().__exit__(*how)

    def guest(self, *fields, **how):
        self._guests.append(RawClient(self, "/chat", *fields, **how))
        return self._guests[-1]


class websocket_chat_test(http_support.TestCase):
    def enter(self, server, count=1, **how):
        """Guests that have all heard of each other."""
        guests = []
        for number in range(1, count + 1):
            guests.append(server.guest(**how))
            for each in guests:
                self.assertEqual(each.receive(), (TEXT, f"* guest {number} is here".encode()))
        return guests

    def test_a_message_goes_to_all(self):
        with Room() as server:
            guests = self.enter(server, 3)
            guests[1].send("grüße".encode())
            for each in guests:
                self.assertEqual(each.receive(), (TEXT, "guest 2: grüße".encode()))

    def test_a_leaving_guest_is_announced(self):
        with Room() as server:
            first, second, third = self.enter(server, 3)
            second.send(b"\x03\xe8bye", CLOSE)
            self.assertEqual(second.receive_close()[0], 1000)
            self.assertEqual(first.receive(), (TEXT, b"* guest 2 has left"))
            third.socket.close()  # without a word
            self.assertEqual(first.receive(), (TEXT, b"* guest 3 has left"))

    def test_pings_are_answered(self):
        with Room() as server:
            guest, = self.enter(server)
            guest.send(b"there?", PING)
            self.assertEqual(guest.receive(), (PONG, b"there?"))

    def test_a_message_that_is_too_long_ends_the_connection(self):
        with Room() as server:
            for size, code in ((4000, None), (4001, 1009)):
                guest = server.guest()
                guest.receive()
                guest.send(b"x" * size)
                if code:
                    self.assertEqual(guest.receive_close()[0], code)
                else:
                    self.assertTrue(guest.receive()[1].endswith(b"x" * size))
                    guest.socket.close()

    def test_pages_of_other_origins_are_refused(self):
        with Room() as server:
            own = f"{server.host}:{server.port}"
            for origin, status in (("http://evil.example", 403), ("null", 403), (f"http://{server.host}", 403),
                                   (f"http://x{own}", 403), (f"http://{own}", 101)):
                guest = server.guest(f"Origin: {origin}")
                self.assertTrue(guest.head.startswith(f"HTTP/1.1 {status} "), (origin, guest.head))

    def test_a_plain_request_is_told_to_upgrade(self):
        with Room() as server:
            answer = curl(server, "/chat")

        self.assertEqual((answer.status, answer.fields["upgrade"]), (426, "websocket"))

    def test_the_page_runs_only_its_own_script(self):
        with Room() as server:
            for path, kind in (("/", "text/html"), ("/chat.js", "text/javascript"), ("/chat.css", "text/css")):
                answer = curl(server, path)
                self.assertEqual(answer.fields["content-type"], f"{kind}; charset=utf-8")
                self.assertIn("default-src 'self'", answer.fields["content-security-policy"])

    def test_a_guest_that_floods_is_slowed_down(self):
        with Room() as server:
            guest, = self.enter(server)
            start = time.monotonic()
            for number in range(40):
                guest.send(str(number).encode())
            for number in range(40):
                self.assertEqual(guest.receive(), (TEXT, f"guest 1: {number}".encode()))
            # Twenty at once, and twenty a second after that.
            self.assertGreater(time.monotonic() - start, 0.9)

    def test_a_guest_that_does_not_read_is_disconnected_and_the_others_go_on(self):
        with Room() as server:
            listener, _, *talkers = self.enter_with_a_slow_one(server, 30)
            # For ten seconds the slow one takes nothing.
            for _ in range(1000):
                if b"* guest 2 has left" in self.talk(listener, talkers):
                    return
            self.fail("it is still there")

    def test_a_guest_that_has_missed_lines_is_told_so(self):
        with Room() as server:
            listener, slow, *talkers = self.enter_with_a_slow_one(server, 30)
            # More than the kernel and the room keep for it.
            for _ in range(60):
                self.talk(listener, talkers)
            self.assertEqual(slow.receive_close(), (1008, "you read too slowly"))

    def enter_with_a_slow_one(self, server, talkers):
        guests = self.enter(server)
        for number in range(2, talkers + 3):
            guests.append(server.guest(receive_buffer=4096 if number == 2 else None))
            self.assertEqual(guests[0].receive(), (TEXT, f"* guest {number} is here".encode()))
        return guests

    def talk(self, listener, talkers):
        """Each says something, which the listener and the others read before this returns; what was heard of others."""
        for each in talkers:
            each.send(b"x" * 4000)
        heard, notes = 0, []
        while heard < len(talkers):
            kind, data = listener.receive()
            self.assertEqual(kind, TEXT)
            if data.startswith(b"* "):
                notes.append(data)
            else:
                heard += 1
        for each in talkers:
            each.drop_what_is_there()
        return notes

    def test_a_stop_closes_with_going_away(self):
        with Room() as server:
            guest, = self.enter(server)
            os.kill(server.pid, signal.SIGTERM)
            self.assertEqual(guest.receive_close(), (1001, ""))
            guest.send(b"\x03\xe9", CLOSE)
            self.assertEqual(server.wait(), 0)


@unittest.skipUnless(websockets, "python3-websockets is missing")
class websockets_test(http_support.TestCase):
    def talk(self, body):
        with Room() as server:
            asyncio.run(asyncio.wait_for(body(server, f"ws://{server.host}:{server.port}/chat"), support.WAIT))

    def test_guests_hear_each_other(self):
        async def body(server, url):
            async with websockets.connect(url) as first:
                self.assertEqual(await first.recv(), "* guest 1 is here")
                second = await websockets.connect(url)
                self.assertEqual(await second.recv(), "* guest 2 is here")
                for number in range(10):
                    await first.send(f"hello {number} " + "ä" * number * 100)
                    self.assertEqual(await second.recv(), f"guest 1: hello {number} " + "ä" * number * 100)
                await (await first.ping())
                await first.close()
                self.assertEqual(first.close_code, 1000)
                self.assertEqual(await second.recv(), "* guest 1 has left")
                await second.close()
        self.talk(body)

    def test_many_guests_hear_everything_in_the_same_order(self):
        async def body(server, url):
            guests = [await websockets.connect(url) for _ in range(20)]
            for each in guests:
                while await each.recv() != "* guest 20 is here":
                    pass
            await asyncio.gather(*(each.send(f"message {number}") for number in range(10) for each in guests))
            heard = [[await each.recv() for _ in range(200)] for each in guests]
            for each in heard:
                self.assertEqual(each, heard[0])
            self.assertEqual(len(set(heard[0])), 200)
            for each in guests:
                await each.close()
        self.talk(body)

    def test_a_foreign_origin_is_refused(self):
        async def body(server, url):
            with self.assertRaisesRegex(websockets.exceptions.WebSocketException, "403"):
                await websockets.connect(url, origin="https://evil.example")
            async with websockets.connect(url, origin=f"http://{server.host}:{server.port}") as guest:
                self.assertEqual(await guest.recv(), "* guest 1 is here")
        self.talk(body)

    def test_a_stop_closes_with_going_away(self):
        async def body(server, url):
            async with websockets.connect(url) as guest:
                await guest.recv()
                os.kill(server.pid, signal.SIGTERM)
                with self.assertRaises(websockets.exceptions.ConnectionClosed) as caught:
                    await guest.recv()
                self.assertEqual((caught.exception.rcvd.code, caught.exception.rcvd.reason), (1001, ""))
        self.talk(body)


# Not in CI, where installing a browser would take longer than all tests of the examples.
@unittest.skipUnless(CHROMIUM, "chromium is missing")
class chromium_test(http_support.TestCase):
    SAY = 'text.value = {}; document.getElementById("form").requestSubmit()'
    HAS = '[...document.querySelectorAll("li")].some(each => each.textContent === {})'

    def test_a_message_of_one_tab_arrives_in_another(self):
        markup = '"<b>hello</b> & grüße"'
        with Room() as server, Browser() as browser:
            url = f"http://{server.host}:{server.port}/"
            first = browser.tab(url)
            first.wait_for(self.HAS.format('"* guest 1 is here"'))
            second = browser.tab(url)
            for each in (first, second):
                each.wait_for(self.HAS.format('"* guest 2 is here"'))

            second.evaluate(self.SAY.format(markup))
            for each in (first, second):
                each.wait_for(self.HAS.format('"guest 2: " + ' + markup))
            self.assertEqual(first.evaluate('document.querySelectorAll("li b").length'), 0)  # shown, not obeyed
            if "SIMPLENET_SCREENSHOT" in os.environ:
                first.screenshot(os.environ["SIMPLENET_SCREENSHOT"])

            os.kill(server.pid, signal.SIGTERM)
            first.wait_for(self.HAS.format('"* closed: 1001 "'))
            self.assertEqual(server.wait(), 0)

    def test_a_page_of_another_origin_is_refused(self):
        with Room() as server, Server("http_hello") as other, Browser() as browser:
            tab = browser.tab(f"http://{other.host}:{other.port}/")
            tab.wait_for('document.body !== null && document.body.innerText.includes("Hello")')
            tab.evaluate(f'var foreign = new WebSocket("ws://{server.host}:{server.port}/chat"); var events = [];'
                         'foreign.onopen = () => events.push("open"); foreign.onclose = () => events.push("close");')
            tab.wait_for("events.length !== 0")
            self.assertEqual(tab.evaluate("events.join()"), "close")


if __name__ == "__main__":
    support.main()
