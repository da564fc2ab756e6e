"""Thousands of raw connections in one thread, with epoll and nonblocking sockets only.

An Engine runs the loop; it notifies a Connection when it is connected, may read, may write, or has ended. It
does not use the library under test, so that both sides cannot share the same mistake.
"""

import errno
import os
import select
import socket
import struct
import time

from secure import Secure

IN = select.EPOLLIN
OUT = select.EPOLLOUT
BROKEN = select.EPOLLHUP | select.EPOLLERR
TICK = 0.2  # seconds between two calls of tick()
CHUNK = 65536


class Engine:
    """Every connection of one case."""

    def __init__(self):
        self._epoll = select.epoll()
        self._members = {}  # descriptor: connection or listener
        self._next_tick = 0.0
        self.moved = 0  # bytes and connections of the crowd so far, to detect progress

    def close(self):
        for each in list(self._members.values()):
            each.close()
        self._epoll.close()

    def add(self, member, wants):
        self._members[member.socket.fileno()] = member
        self._epoll.register(member.socket, wants)

    def change(self, member, wants):
        self._epoll.modify(member.socket, wants)

    def remove(self, member):
        del self._members[member.socket.fileno()]
        self._epoll.unregister(member.socket)

    def close_bad_far_ends(self):
        for each in list(self._members.values()):
            if isinstance(each, FarEnd) and each.command == FarEnd.BLOCK:
                each.close()

    def run(self, seconds, until=None):
        """Runs until `until()` or for `seconds`; returns whether `until()` was reached."""
        end = time.monotonic() + seconds
        while until is None or not until():
            now = time.monotonic()
            if now >= end:
                return False
            if now >= self._next_tick:
                self._next_tick = now + TICK
                for member in list(self._members.values()):
                    member.tick(now)
            wait = max(0.0, min(end, self._next_tick) - now)
            for descriptor, events in self._epoll.poll(wait, 512):
                member = self._members.get(descriptor)  # none: closed by an earlier one
                if member:
                    member.handle(events)
        return True

    def run_until_still(self, quiet, seconds):
        """Runs until nothing has moved for `quiet` seconds, or for `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            before = self.moved
            self.run(min(quiet, max(0.0, end - time.monotonic())))
            if self.moved == before:
                return True
        return False


class Connection:
    """A client, from connect(2) on, or an accepted connection."""

    counts = True  # in Engine.moved
    secure = None  # TLS, if it has it

    def __init__(self, engine, address=None, accepted=None, small_buffers=False, secure=False):
        self.engine = engine
        self.ended = False  # by the other side, or by a refusal
        self.closed = False
        self.connected = accepted is not None
        self._wants = IN if self.connected else OUT
        self.socket = accepted or socket.socket(family_of(address), socket.SOCK_STREAM)
        self.socket.setblocking(False)
        if secure:
            self.secure = Secure(self.socket)
        if small_buffers:  # before connecting, which determines the window
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32768)
            if self.socket.family == socket.AF_INET:
                use_small_segments(self.socket)
        if self.connected:
            engine.add(self, self._wants)
            return
        result = self.socket.connect_ex(address)
        engine.add(self, OUT)
        # EAGAIN: the backlog of a Unix domain listener is full. tick() tries again.
        self._again = address if result == errno.EAGAIN else None
        if result not in (0, errno.EINPROGRESS, errno.EAGAIN):
            self._end()

    def want(self, wants):
        if wants != self._wants and not self.closed:
            self._wants = wants
            self._renew()

    def _renew(self):
        """What epoll is to report: what the manner wants, and room for the rest of its records."""
        if not self.closed:
            owes = self.secure is not None and self.secure.owes
            self.engine.change(self, self._wants | (OUT if owes else 0))

    def handle(self, events):
        try:
            if not self.connected:
                self._finish_connecting()
                return
            if self.secure is not None and events & OUT and self.secure.owes:
                self.secure.flush()
                self._renew()
            if events & IN and self._wants & IN:
                self.on_readable()
                while self.secure is not None and self.secure.holds and self._wants & IN and not self.closed:
                    self.on_readable()
            if not self.closed and events & OUT and self._wants & OUT:
                self.on_writable()
            if not self.closed and events & BROKEN and not (events & self._wants):
                self._end()
        except BlockingIOError:
            pass
        except OSError:
            self._end()

    def _finish_connecting(self):
        if self._again:
            return
        error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        if self.secure is not None and not self.secure.shake_hands():
            self.want(IN)
            self._renew()
            return
        self.connected = True
        self.moved(1)
        self.want(0)
        self.on_connect()

    def tick(self, now):
        if not self.connected and self._again:
            result = self.socket.connect_ex(self._again)
            if result == 0:
                self._again = None
            elif result != errno.EAGAIN:
                self._end()
            return
        if not self.connected:
            return
        try:
            self.on_tick(now)
        except BlockingIOError:
            pass
        except OSError:
            self._end()

    def send(self, data, flags=0):
        if self.secure is not None and not flags:
            count = self.secure.send(data)
            self._renew()
        else:
            count = self.socket.send(data, flags | socket.MSG_NOSIGNAL)
        self.moved(count)
        return count

    def receive(self, size=CHUNK):
        """Some bytes; empty at the end of the stream."""
        data = self.secure.receive(size) if self.secure is not None else self.socket.recv(size)
        self.moved(len(data))
        return data

    def moved(self, count):
        if self.counts:
            self.engine.moved += count

    def _end(self):
        self.ended = True
        self.moved(1)
        self.close()

    def close(self):
        if not self.closed:
            self.closed = True
            self.engine.remove(self)
            self.socket.close()

    def reset(self):
        """Ends the connection so that the other side gets ECONNRESET, even through a proxy."""
        if not self.closed:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close()

    def leave(self):
        """Closes with nothing unread, so in an orderly way: only later data is answered by a reset."""
        try:
            while self.receive():
                pass
        except BlockingIOError:
            pass
        self.close()

    # The parts of a manner.
    def on_connect(self):
        pass

    def on_readable(self):
        pass

    def on_writable(self):
        pass

    def on_tick(self, now):
        pass


def use_small_segments(stream):
    """Uses segments as small as Ethernet's. The kernel sizes a send buffer for 20 segments; with the 64 KiB of
    the loopback interface, a thousand connections would use up all its memory for TCP (net.ipv4.tcp_mem)."""
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)


def tcp_memory_is_short():
    """Whether all connections of the machine are in trouble, which is not the fault of the server under
    test."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        used = int(file.read().partition("TCP:")[2].partition("mem ")[2].split()[0])
    with open("/proc/sys/net/ipv4/tcp_mem", encoding="ascii") as file:
        return used > int(file.read().split()[1])


def family_of(address):
    return socket.AF_UNIX if isinstance(address, str) else socket.AF_INET


class Victim(Connection):
    """A well-behaved client: sends what it is told to, and reads everything."""

    counts = False
    MOST_KEPT = 1 << 20  # the last bytes of the messages of a chat

    def __init__(self, engine, address, keep_alive=b"", secure=False):
        self._to_send = b""
        self._then_end = False
        self.keep_alive = keep_alive  # sent with every tick
        self.received = bytearray()
        self.count = 0  # bytes received
        self.pauses_at = None  # stops reading at about that count
        self.finished = False  # the other side has ended
        super().__init__(engine, address, secure=secure)

    def on_connect(self):
        self.want(IN | OUT)

    def ask(self, data, then_end=False):
        self._to_send += data
        self._then_end |= then_end
        if self.connected:
            self.want(self._wants | OUT)

    def on_writable(self):
        if self._to_send:
            self._to_send = self._to_send[self.send(self._to_send):]
        if self._to_send:
            return
        self.want(self._wants & ~OUT)
        if self._then_end:
            self._then_end = False
            self.socket.shutdown(socket.SHUT_WR)

    def on_readable(self):
        data = self.receive()
        self.count += len(data)
        self.received += data
        if len(self.received) > 2 * self.MOST_KEPT:
            del self.received[:-self.MOST_KEPT]
        if not data:
            self.finished = True
        if not data or (self.pauses_at is not None and self.count >= self.pauses_at):
            self.want(self._wants & ~IN)

    def gone(self):
        return self.closed or self.finished

    def __str__(self):
        state = "broken" if self.ended else "at the end" if self.finished else "open" if self.connected else "connecting"
        return f"{state} after {self.count} bytes"

    def on_tick(self, now):
        if self.keep_alive and not self._to_send:
            self.ask(self.keep_alive)


class Listener:
    """Accepts connections, and makes a `kind` of each."""

    def __init__(self, engine, kind):
        self._engine = engine
        self._kind = kind
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.socket.setblocking(False)
        use_small_segments(self.socket)  # accepted sockets inherit them
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)
        self.address = self.socket.getsockname()
        engine.add(self, IN)

    def handle(self, _):
        try:
            for _ in range(64):
                stream, _ = self.socket.accept()
                self._kind(self._engine, accepted=stream)
        except OSError:
            pass  # no more clients, or one that has gone

    def tick(self, now):
        pass

    def close(self):
        self._engine.remove(self)
        self.socket.close()


class FarEnd(Connection):
    """The server behind a proxy: an echo. Its first line can make it as bad as the crowd."""

    MOST_HELD = 2 * CHUNK
    ENOUGH = 300_000  # bytes, after which it leaves or resets
    LEAVE, RESET, BLOCK, SWALLOW = b"LEAVE\n", b"RESET\n", b"BLOCK\n", b"EATEN\n"

    def __init__(self, engine, accepted):
        self.command = None
        self._held = bytearray()
        self._seen = 0
        self._over = False
        super().__init__(engine, accepted=accepted)

    def on_readable(self):
        data = self.receive()
        self._seen += len(data)
        self._over = not data
        if self.command is None:
            self.command = data[:6] if data[:6] in (self.LEAVE, self.RESET, self.BLOCK, self.SWALLOW) else b""
        if self.command:
            self._behave()
            return
        self._held += data
        self.on_writable()

    def _behave(self):
        if self._over:
            self.close()
        elif self.command == self.BLOCK:
            self.want(0)
        elif self.command == self.RESET and self._seen >= self.ENOUGH:
            self.reset()
        elif self.command == self.LEAVE and self._seen >= self.ENOUGH:
            self.leave()

    def on_writable(self):
        try:
            while self._held:
                del self._held[:self.send(self._held[:CHUNK])]
        except BlockingIOError:
            pass
        if self._over and not self._held:
            self.close()
            return
        reads = not self._over and len(self._held) < self.MOST_HELD
        self.want((IN if reads else 0) | (OUT if self._held else 0))
