"""The manners of bad clients. Each class is one manner; a crowd is a thousand of one class."""

import random
import socket
import struct

from engine import CHUNK, IN, OUT, Connection, FarEnd


class Manner(Connection):
    """One client of the crowd.

    A target says how to start an exchange (`opening`), what the client can flood it with (`flood`) and how much
    one client sends at most (`budget`).
    """

    small_buffers = True  # so that they fill soon, and a thousand clients fit into this machine
    again = 0  # how often a client that has ended on its own is replaced
    trickles = False  # a little moves forever
    only = None  # "proxy", "local": the only targets for which it makes sense

    def __init__(self, engine, address, target):
        self.target = target
        self.sent = 0
        self._rest = b""
        super().__init__(engine, address, small_buffers=self.small_buffers, secure=target.secure == "all")

    @staticmethod
    def fits(_target):
        return True

    def flood(self, up_to=None):
        """Sends until nothing more fits; returns whether `up_to` bytes (the budget) have been sent."""
        most = self.target.budget if up_to is None else up_to
        try:
            while self.sent < most:
                if not self._rest:
                    self._rest = self.target.opening if self.sent == 0 else b""
                    self._rest += self.target.flood
                self._rest = self._rest[:most - self.sent]
                count = self.send(self._rest)
                self._rest = self._rest[count:]
                self.sent += count
        except BlockingIOError:
            return False
        return True

class NeverReads(Manner):
    """Sends until nothing more fits, and reads nothing."""

    def on_connect(self):
        self.want(OUT)

    def on_writable(self):
        if self.flood():
            self.want(0)


class ReadsSlowly(NeverReads):
    """The same, but reads one byte a second."""

    trickles = True
    _last = 0.0

    def on_tick(self, now):
        if now - self._last >= 1.0:
            self._last = now
            self.receive(1)


class SendsSlowly(Manner):
    """Sends one byte a second, and reads everything."""

    trickles = True
    _last = 0.0

    def on_connect(self):
        self.want(IN)

    def on_readable(self):
        if not self.receive():
            self.want(0)

    def on_tick(self, now):
        if now - self._last >= 1.0:
            self._last = now
            text = self.target.opening + self.target.flood
            self.sent += self.send(text[self.sent % len(text):][:1])


class HalfClosesAtOnce(Manner):
    """Ends its direction before it has sent anything, and stays."""

    def on_connect(self):
        self.socket.shutdown(socket.SHUT_WR)


class HalfClosesAfterSending(Manner):
    """Sends something, ends its direction, stays, and reads nothing."""

    def on_connect(self):
        self.want(OUT)

    def on_writable(self):
        if self.flood(up_to=min(self.target.budget, CHUNK)):
            self.socket.shutdown(socket.SHUT_WR)
            self.want(0)


class _Breaks(Manner):
    """Keeps the server writing, reads a part of it, and leaves."""

    small_buffers = False  # a large amount: one call of the server is many segments
    again = 3

    def __init__(self, *arguments):
        self._enough = random.randrange(1, random.choice([1 << 16, 1 << 20]))
        self._read = 0
        self._patience = random.randrange(1, 6)
        super().__init__(*arguments)

    def on_connect(self):
        self.want(IN | OUT)

    def on_writable(self):
        if self.flood(up_to=min(self.target.budget, 1 << 18)):
            self.want(IN)

    def on_readable(self):
        data = self.receive()
        self._read += len(data)
        if not data or self._read >= self._enough:
            self.leave()

    def on_tick(self, now):
        self._patience -= 1  # in case there is less to read than that
        if self._patience == 0:
            self.leave()


class ResetsInTheMiddle(_Breaks):
    """Resets the connection while the server writes, splices or sends a file to it."""

    def leave(self):
        self.reset()


class LeavesInTheMiddle(_Breaks):
    """Closes with nothing unread, so in an orderly way, while more is arriving: only that is answered by a
    reset."""


class AsksAndLeaves(Manner):
    """Sends all it can and closes at once: the reply arrives at a closed socket."""

    small_buffers = False
    again = 3

    def on_connect(self):
        self.want(OUT)

    def on_writable(self):
        self.flood(up_to=min(self.target.budget, 4 * CHUNK))
        self.close()


class Silent(Manner):
    """Connects, and sends nothing."""


class Urgent(Manner):
    """Sends urgent data (MSG_OOB) at the beginning, in between, and as the last byte; reads nothing."""

    def on_connect(self):
        self.send(b"!", socket.MSG_OOB)
        self.want(OUT)

    def on_writable(self):
        self.flood(up_to=min(self.target.budget, 2000))
        self.send(b"!", socket.MSG_OOB)
        self.sent += self.send(self.target.flood[:100])
        self.send(b"!", socket.MSG_OOB)
        self.want(0)

    @staticmethod
    def fits(target):
        return not target.local  # few kernels support it for Unix domain sockets


class ClosesUnread(Manner):
    """Waits until something has arrived, and closes without reading it: a reset."""

    again = 3

    def on_connect(self):
        self.want(OUT)

    def on_writable(self):
        if self.flood(up_to=min(self.target.budget, 8192)):
            self.want(IN)  # only for the event

    def on_readable(self):
        self.close()

    def on_tick(self, now):
        if self.sent and not self._rest:
            self.close()  # nothing will arrive


class Garbage(Manner):
    """Sends meaningless bytes, and stays."""

    def on_connect(self):
        self.send(random.randbytes(random.randrange(1, 3000)))


class Storm(Manner):
    """Connects and resets at once, again and again."""

    again = 10

    def on_connect(self):
        self.reset()


class FarEndLeaves(NeverReads):
    """The server behind the proxy closes while it receives."""

    small_buffers = False
    command = FarEnd.LEAVE

    def on_connect(self):
        self.send(self.command)
        super().on_connect()

    @staticmethod
    def fits(target):
        return target.proxy


class FarEndResets(FarEndLeaves):
    """The server behind the proxy resets."""

    command = FarEnd.RESET


class FarEndBlocks(FarEndLeaves):
    """The server behind the proxy never reads."""

    small_buffers = True
    command = FarEnd.BLOCK


class SendsDescriptors(Manner):
    """Sends as many open descriptors as possible to a server that expects none."""

    def on_connect(self):
        self.want(OUT)

    def on_writable(self):
        carried = struct.pack("16i", *[0] * 16)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, carried)]
        for _ in range(4):
            self.engine.moved += self.socket.sendmsg([b"x\n"], rights, socket.MSG_NOSIGNAL)
        self.want(0)

    @staticmethod
    def fits(target):
        return target.local


# --- datagrams ------------------------------------------------------------------------------------

class Datagrams(Connection):
    """A socket of its own, connected to the server; it sends everything at once."""

    again = 0
    trickles = False
    count = 50

    def __init__(self, engine, address, target):
        self.engine = engine
        self.target = target
        self.ended = self.closed = False
        self.connected = True
        self._wants = OUT
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.connect(address)
        engine.moved += 1
        engine.add(self, OUT)

    @staticmethod
    def fits(_target):
        return True

    def on_writable(self):
        for _ in range(self.count):
            self.engine.moved += 1
            self.socket.send(self.datagram())
        self.after()

    def after(self):
        self.want(0)

    def datagram(self):
        return random.randbytes(random.randrange(1, 1400))


class DatagramsUnread(Datagrams):
    """Sends many datagrams, and reads none of the replies."""


class DatagramsEmpty(Datagrams):
    """Sends datagrams without a byte."""

    def datagram(self):
        return b""


class DatagramsTooLong(Datagrams):
    """Sends datagrams longer than the server accepts."""

    count = 5

    def datagram(self):
        return bytes(60_000)


class DatagramsAndGone(Datagrams):
    """The replies find no socket: the server gets the error that the port is unreachable."""

    again = 5

    def after(self):
        self.close()


STREAM = [NeverReads, ReadsSlowly, SendsSlowly, HalfClosesAtOnce, HalfClosesAfterSending, ResetsInTheMiddle,
          LeavesInTheMiddle, AsksAndLeaves, Silent, Urgent, ClosesUnread, Garbage, Storm, FarEndLeaves,
          FarEndResets, FarEndBlocks, SendsDescriptors]
DATAGRAM = [DatagramsUnread, DatagramsEmpty, DatagramsTooLong, DatagramsAndGone]


def name_of(manner):
    """`NeverReads` becomes never-reads."""
    return "".join("-" + each.lower() if each.isupper() else each for each in manner.__name__)[1:]


def by_name():
    return {name_of(each): each for each in STREAM + DATAGRAM}
