"""A WebSocket client written by hand, for what well-behaved clients do not do, and a browser."""

import base64
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import http_support
import support

CHROMIUM = shutil.which("chromium")
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class RawClient:
    """Masks with zeros. Replies to nothing by itself."""

    def __init__(self, server, path, *fields, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(support.WAIT)
        self.socket.connect((server.host, server.port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {server.host}:{server.port}",
                                         "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                         f"Sec-WebSocket-Key: {key}", *fields, "", ""]).encode())
        self.head = http_support.receive_head(self.socket).decode()

    def send(self, data, kind=TEXT):
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack("!H", size)
        self.socket.sendall(bytes([0x80 | kind]) + length + bytes(4) + data)

    def receive(self):
        """The kind and the data of one frame."""
        first, size = support.receive_exactly(self.socket, 2)
        if size == 126:
            size, = struct.unpack("!H", support.receive_exactly(self.socket, 2))
        elif size == 127:
            size, = struct.unpack("!Q", support.receive_exactly(self.socket, 8))
        return first & 0xf, support.receive_exactly(self.socket, size)

    def receive_close(self):
        """Skips messages; the code and the reason of the close frame."""
        while True:
            kind, data = self.receive()
            if kind == CLOSE:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()

    def drop_what_is_there(self):
        """Takes bytes without a look at them: afterwards nothing can be received."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(1 << 20):
                pass
        except BlockingIOError:
            self.socket.settimeout(support.WAIT)


class Browser:
    """Headless Chromium, driven over a pipe by its DevTools protocol. Ended at the end of `with`."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory()
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()

        def place():  # Chromium reads commands from 3 and writes answers to 4
            support._die_with_parent()
            taken = [os.dup(commands), os.dup(answers)]
            for number, each in zip((3, 4), taken):
                os.dup2(each, number)

        # Without the sandbox: it needs privileges that containers do not have, and the page is our own.
        self._process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--no-proxy-server", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(commands)
        os.close(answers)
        self._number = 0
        self._text = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGKILL)  # its own session: Chromium and its children
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()

    def command(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        end = time.monotonic() + support.WAIT
        while b"\0" not in self._text:
            if not select.select([self._answers], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("Chromium does not answer")
            some = os.read(self._answers, 1 << 20)
            if not some:
                raise AssertionError("Chromium has ended")
            self._text += some
        message, _, self._text = self._text.partition(b"\0")
        return json.loads(message)

    def tab(self, url):
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        tab = Tab(self, self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        begun = tab.command("Page.navigate", url=url)  # before its answer, the page may lose commands
        if "errorText" in begun:
            raise AssertionError(f"{url}: {begun['errorText']}")
        return tab


class Tab:
    def __init__(self, browser, session):
        self._browser, self._session = browser, session

    def command(self, method, **parameters):
        return self._browser.command(method, self._session, **parameters)

    def evaluate(self, script):
        result = self.command("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, script):
        http_support.wait_until(lambda: self.evaluate(script), script)

    def screenshot(self, path):
        """For people who run a test by hand."""
        picture = self.command("Page.captureScreenshot")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture))
