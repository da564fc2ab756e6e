"""TLS for a Connection, by Python's ssl: the crowd does not use the library under test."""

import ssl

_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_context.check_hostname = False
_context.verify_mode = ssl.CERT_NONE


def present(certificate, key):
    """All connections identify themselves with this certificate if the server asks."""
    _context.load_cert_chain(certificate, key)


def client_hello():
    """The first message of a handshake."""
    outgoing = ssl.MemoryBIO()
    try:
        _context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Secure:
    """TLS over a nonblocking socket."""

    def __init__(self, socket):
        self._socket = socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context.wrap_bio(self._incoming, self._outgoing)
        self._sealed = b""  # bytes that the socket has not taken
        self.shaking = True

    def shake_hands(self):
        """Goes on with the handshake; returns whether it is complete."""
        while self.shaking:
            try:
                self._tls.do_handshake()
                self.shaking = False
            except ssl.SSLWantReadError:
                self.flush()
                try:
                    self._fetch()
                except BlockingIOError:
                    return False
        self.flush()
        return True

    @property
    def owes(self):
        """Whether bytes wait for room in the socket."""
        return bool(self._sealed or self._outgoing.pending)

    @property
    def holds(self):
        """Whether bytes were received that nobody has read."""
        return bool(self._tls.pending() or self._incoming.pending)

    def flush(self):
        try:
            while self.owes:
                self._sealed = self._sealed or self._outgoing.read()
                self._sealed = self._sealed[self._socket.send(self._sealed):]
        except BlockingIOError:
            pass

    def send(self, data):
        self.flush()
        if self.owes:
            raise BlockingIOError
        count = self._tls.write(data)
        self.flush()
        return count

    def receive(self, size):
        """Some bytes; empty at the end, which close_notify announces."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._fetch()
            except ssl.SSLZeroReturnError:
                return b""

    def _fetch(self):
        data = self._socket.recv(65536)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()  # without close_notify an error: the connection was cut
