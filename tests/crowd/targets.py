"""The targets of the crowd: every example that listens, and the idioms of the pages.

A Target says how its server is started, what a client sends to keep it busy, what a victim sends to be served,
and how much memory and how many descriptors one hostile client may cost.
"""

import dataclasses
import itertools
import os

from engine import IN, FarEnd
from secure import client_hello

KIB = 1024
MIB = 1024 * 1024
FILE_SIZE = 4 * MIB
HANDSHAKE = 10.0  # seconds: tls::server_options::handshake_timeout, which the examples leave as it is
PROXY_HEADER = b"PROXY TCP4 192.0.2.1 127.0.0.1 1234 80\r\n"

_numbers = itertools.count(1)


# --- the protocols of victims ---------------------------------------------------------------------

class Answered:
    """Sends `before`, a unique word, and `after`; served when the word comes back."""

    def __init__(self, before=b"", after=b""):
        self._before, self._after = before, after

    def prepare(self, old):
        """Gets a first reply before the crowd arrives."""
        return self._ask(old)

    def check(self, old, new):
        first, second = self._ask(old), self._ask(new)
        return lambda: first() and second()

    def _ask(self, victim):
        word = b"word%09d" % next(_numbers)
        victim.ask(self._before + word + self._after)
        return lambda: word in victim.received


class Replied(Answered):
    """Sends a request; served when one more reply has arrived."""

    def __init__(self, question, answer):
        super().__init__()
        self._question, self._answer = question, answer

    def _ask(self, victim):
        size = victim.count + len(self._answer)
        victim.ask(self._question)
        return lambda: victim.count >= size and self._answer in victim.received


class Told(Answered):
    """One victim hears the messages of the other."""

    def __init__(self, first=b""):
        super().__init__()
        self._first = first

    def prepare(self, old):
        if self._first:
            old.ask(self._first)
        return lambda: old.connected

    def check(self, old, new):
        if self._first:
            new.ask(self._first)
        words = [(speaker, hearer, b"word%09d" % next(_numbers)) for speaker, hearer in ((old, new), (new, old))]
        for speaker, _, word in words:
            speaker.keep_alive = word + b"\n"  # repeatedly: nobody hears earlier messages

        def done():
            if not all(word in hearer.received for _, hearer, word in words):
                return False
            old.keep_alive = new.keep_alive = b""
            return True
        return done


class Greeted(Answered):
    """Speaks to each new client, at once or after `says`: only a new victim is served."""

    def __init__(self, size, says=b""):
        super().__init__()
        self._size = size
        self._says = says

    def prepare(self, old):
        old.pauses_at = self._size  # or it would receive forever
        return lambda: old.connected

    def check(self, old, new):
        new.pauses_at = self._size
        if self._says:
            new.ask(self._says)
        return lambda: new.count >= self._size


class Swallowed(Answered):
    """Takes everything and sends nothing; served when the end is answered by an end."""

    def __init__(self, says=b"x"):
        super().__init__()
        self._says = says

    def prepare(self, old):
        return lambda: old.connected

    def _ask(self, victim):
        victim.ask(self._says, then_end=True)
        return lambda: victim.finished


class AnsweredAtTheEnd(Swallowed):
    """Replies when the request has ended."""

    def _ask(self, victim):
        word = b"word%09d" % next(_numbers)
        victim.ask(word, then_end=True)
        return lambda: word in victim.received


class Downloaded:
    """A file over HTTP; the old victim has read a part of it when the crowd arrives."""

    request = b"GET / HTTP/1.1\r\nHost: victim\r\n\r\n"

    def prepare(self, old):
        old.pauses_at = 100_000
        old.ask(self.request)
        return lambda: old.count >= old.pauses_at

    def check(self, old, new):
        old.pauses_at = None
        old.want(IN)
        new.ask(self.request)
        return lambda: old.count > FILE_SIZE and new.count > FILE_SIZE


class DownloadedByName(Downloaded):
    """The same, of a server with a directory."""

    request = b"GET /file HTTP/1.1\r\nHost: victim\r\n\r\n"


class Messages(Answered):
    """A WebSocket, whose messages come back."""

    def __init__(self, handshake):
        super().__init__()
        self._handshake = handshake
        self._known = set()  # victims whose handshake was sent

    def _ask(self, victim):
        word = b"word%09d" % next(_numbers)
        first = victim not in self._known
        self._known.add(victim)
        victim.ask((self._handshake if first else b"") + frame(word))
        return lambda: word in victim.received


def frame(text):
    """A text message of a client, masked with zeros (RFC 6455, section 5.2)."""
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    return b"\x81" + size + bytes(4) + text


def request(line, body=None, *fields, size=None):
    """A request of HTTP/1.1; `size` announces a larger body than there is."""
    lines = [line + " HTTP/1.1", "Host: localhost", *fields]
    if body is not None:
        lines.append(f"Content-Length: {len(body) if size is None else size}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def handshake(path, *fields):
    return request(f"GET {path}", None, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", *fields,
                   "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")


# --- targets --------------------------------------------------------------------------------------

@dataclasses.dataclass
class Target:
    name: str
    program: str
    arguments: tuple = ()
    protocol: object = dataclasses.field(default_factory=Answered)
    opening: bytes = b""  # starts the exchange
    flood: bytes = b"x" * 16384  # can be sent forever
    budget: int = 16 * MIB  # bytes that one client of the crowd sends at most
    crowd_budget: int = 0  # bytes that all of them send at most; 0: no limit
    memory: int = 96 * KIB  # bytes that one client may cost
    descriptors: int = 1
    base_memory: int = 40 * MIB  # the pool of receive buffers, and memory kept by malloc
    proxy: bool = False
    local: bool = False
    datagram: bool = False
    grace: float = 0.0  # seconds that the server takes to end, by design
    keep_alive: bytes = b""  # sent repeatedly by the old victim
    shows_out: bool = False  # disconnects idle clients, after a second
    handshake: float = 0.0  # seconds that a client has for it; 0: there is none, or the crowd completes it
    announces: str = r"listening(?: on (.*):(\d+) \((?:epoll|io_uring)\))?\n"  # how a line of its output begins
    secure: str = ""  # TLS: "victims" have it, or "all": then the crowd misbehaves inside of it
    drops: bool = False  # disconnects a member that is far behind; such a victim connects again

    def command(self, case):
        at = [] if self.local else ["--port", "0"]
        known = {"FILE": case.file, "DIRECTORY": case.directory, "SOCKET": case.socket, "FAR": case.far_end}
        for kind in ("server.pem", "server.key", "root.pem"):
            known[kind] = os.path.join(case.certificates or "", kind)
        words = [str(known.get(word, word)) for word in self.arguments]
        return [os.path.join(case.options.examples, self.program), *words, *at, "--backend", case.backend]


def _echo(name, **more):
    return Target(name, name, **more)


def examples():
    line = b"y" * 900 + b"\n"
    return [
        _echo("echo_server"),
        _echo("multicore_echo", grace=10.0),
        # Its queue has a mark of 64 KiB, and grows by doubling.
        _echo("muduo_style_echo", memory=300 * KIB),
        _echo("rolling_restart", grace=10.0),
        # It speaks first, and waits two seconds for the end of each client.
        _echo("behind_haproxy", arguments=("--direct", "yes"), protocol=Greeted(8), grace=10.0),
        # Resets clients whose header is not complete after five seconds.
        Target("behind_haproxy/header", "behind_haproxy", protocol=Greeted(8, PROXY_HEADER), opening=PROXY_HEADER,
               grace=10.0),
        Target("behind_haproxy/half-header", "behind_haproxy", protocol=Greeted(8, PROXY_HEADER),
               opening=PROXY_HEADER[:20], budget=20, grace=10.0),
        Target("behind_haproxy/long-header", "behind_haproxy", protocol=Greeted(8, PROXY_HEADER),
               opening=b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", grace=10.0),
        _echo("metrics", grace=1.0),
        # Each client has five seconds.
        Target("metrics/scrapes", "metrics", announces=r"metrics on http://(.*):(\d+)/", grace=1.0,
               protocol=Greeted(1000, b"GET /metrics HTTP/1.0\r\n\r\n"), opening=b"GET /metrics HTTP/1.0\r\n",
               flood=b"Name: value\r\n"),
        # A guest that does not read costs the queue of its room.
        _echo("chat_many_rooms", protocol=Told(), flood=line, crowd_budget=MIB, memory=1200 * KIB),
        # A member that does not read costs its queue, which has a limit.
        _echo("chat_server", protocol=Told(), flood=line, crowd_budget=MIB, memory=1200 * KIB,
              drops=True),
        _echo("line_chat", protocol=Told(b"victim\n"), opening=b"member\n", flood=line, crowd_budget=MIB,
              memory=400 * KIB, drops=True),
        _echo("file_send", arguments=("FILE",), protocol=Downloaded(), opening=Downloaded.request,
              budget=64 * KIB),
        # Each has a connection on the other side, and a pipe or a block of 128 KiB for each direction.
        _echo("port_forward", arguments=("--to", "FAR"), proxy=True, descriptors=6, memory=300 * KIB,
              budget=4 * MIB),
        _echo("graceful_shutdown", grace=2.0),
        _echo("task_dump", protocol=Replied(b"what?", b"dump or block?\n"), flood=b"what?" * 1000,
              budget=64 * KIB),
        _echo("udp_echo", datagram=True),
        _echo("descriptor_passing", arguments=("serve", "DIRECTORY", "SOCKET"), local=True, descriptors=2,
              protocol=Replied(b"file\n", b"here it is\n"), opening=b"file\n", flood=b"file\n" * 1000),
    ]


def secure_examples():
    """Of each: a crowd that misbehaves inside of TLS, one that does not speak it, and one that stops in the middle
    of its first message."""
    own = ("--cert", "server.pem", "--key", "server.key")
    known = [
        ("tls_echo_server", {"arguments": own, "grace": 7.0}),
        ("mtls", {"arguments": (*own, "--client-ca", "root.pem"), "protocol": Greeted(5), "grace": 7.0}),
        # Each has a connection on the other side.
        ("tls_terminator", {"arguments": (*own, "--to", "FAR"), "proxy": True, "descriptors": 6, "budget": 4 * MIB,
                            "grace": 7.0}),
    ]
    hello = client_hello()
    half = {"opening": hello[:len(hello) // 2], "budget": len(hello) // 2}
    crowds = [("", {"secure": "all"}),
              ("/plain", {"secure": "victims", "handshake": HANDSHAKE}),
              ("/half-hello", {"secure": "victims", "handshake": HANDSHAKE, **half})]
    return [Target(name + suffix, name, **{"memory": 300 * KIB, **more, **crowd})
            for name, more in known for suffix, crowd in crowds]


class Idiom(Target):
    """One of idioms.cpp."""

    def command(self, case):
        return [case.options.idioms, self.name.partition(":")[2].partition("/")[0], "--port", "0", "--upstream",
                case.far_end, *self.arguments, "--backend", case.backend]


def idioms():
    line = b"y" * 900 + b"\n"
    lines = {"protocol": Answered(after=b"\n"), "flood": line}
    proxy = {"proxy": True, "descriptors": 6, "memory": 300 * KIB, "budget": 4 * MIB}
    asks = {"proxy": True, "descriptors": 3}
    small_pool = ("--receive-pool", str(64 * KIB))
    known = [
        ("readme", {}),
        # Fewer buffers than clients, so that a small crowd can hold all of them.
        ("readme/small-pool", {"arguments": small_pool}),
        ("ask", {**asks, "protocol": Greeted(4)}),
        ("ask-briefly", {**asks, "protocol": Greeted(4)}),
        ("together", {**asks, "descriptors": 8, "protocol": Greeted(5)}),
        ("run-on", {"protocol": Greeted(19)}),
        ("or-return", {}),
        ("or-return/small-pool", {"arguments": small_pool}),
        ("timeout", {}),
        ("idle", {}),
        ("idle-1s", {"keep_alive": b".", "shows_out": True}),
        ("idle-1s/small-pool", {"arguments": small_pool, "keep_alive": b".", "shows_out": True}),
        ("polite", {"grace": 1.0}),
        # This process receives what the far end swallows: 4 MiB for each would take longer than the patience.
        ("loop", {**proxy, "budget": 256 * KIB, "protocol": Swallowed(FarEnd.SWALLOW), "opening": FarEnd.SWALLOW}),
        ("patiently", {}),
        ("lines", lines),
        # The reader's buffer of 1 MiB, a copy of 900 000 bytes, and memory that malloc keeps from its growth.
        ("messages", {"protocol": Answered(b"PUT 13\r\n"), "opening": b"PUT 900000\r\n", "memory": 5 * MIB // 2}),
        ("read-until", {"protocol": Answered(after=b"\r\n\r\n"), "flood": b"z" * 900 + b"\r\n\r\n"}),
        ("split", {"protocol": Greeted(13), "crowd_budget": 64 * MIB}),
        ("any", {"protocol": Greeted(11), "crowd_budget": 64 * MIB}),
        ("counting", {}),
        ("broadcast", {"protocol": Told(), "flood": line, "crowd_budget": MIB // 2, "memory": 17 * MIB, "drops": True}),
        ("frames", {"protocol": Greeted(MIB), "memory": 400 * KIB}),
        ("queued", {}),
        ("goodbye", {"protocol": Greeted(8), "grace": 5.0}),
        ("copy", {"descriptors": 3, "memory": 160 * KIB, "budget": 4 * MIB}),
        ("copy-to-local", {"descriptors": 5, "protocol": Swallowed(), "crowd_budget": 64 * MIB}),
        ("proxy", proxy),
        ("send-file", {"protocol": Greeted(200_000), "descriptors": 2}),
        ("read-all", {"protocol": AnsweredAtTheEnd(), "budget": 128 * KIB, "memory": 400 * KIB}),
        ("digits", {"protocol": Replied(b"7", b"8"), "flood": b"1" * 4096, "budget": 4096}),
        ("named", {}),
        ("mutex", {"protocol": Replied(b"a line\n", b"deposited\n"), "flood": line, "budget": 32 * KIB}),
        ("semaphore", lines),
        ("questions", lines),
        ("letters", lines),
        ("handed-over", {"protocol": Greeted(12)}),
        ("readiness", {}),
        ("greeting", {"protocol": Greeted(8)}),
        ("requests", {"protocol": Answered(after=b"\n"), "flood": line}),
        # A frame of 13 bytes; the crowd begins one of 60 000.
        ("lengths", {"protocol": Answered(b"\x00\x00\x00\x0d"), "opening": b"\x00\x00\xea\x60", "memory": 300 * KIB}),
        ("lingering", {"protocol": Greeted(10), "grace": 2.0}),
        ("batches", {}),
        ("scratch", {}),
        # A member that does not read costs its queue, which has a limit.
        ("room", {"protocol": Told(), "flood": line, "crowd_budget": MIB, "memory": 1200 * KIB, "drops": True,
                  "grace": 1.0}),
    ]
    return [Idiom("page:" + name, "", **more) for name, more in known]


def asked(line, answer, body=None, *fields):
    """What a target has that answers a request: the crowd repeats it, and reads nothing."""
    question = request(line, body, *fields)
    return {"protocol": Replied(question, answer), "opening": question, "flood": question * (1 + 4096 // len(question))}


# `grace` of http::run_server(), and the time that a client gets to read the last answer.
HTTP_GRACE = 16.0
HEADERS_WITHIN = 20.0  # seconds: http::limits
LINGER = 30.0  # seconds that a client may go on sending behind the 408


def http_examples():
    """The crowd repeats a request, or sends a body that never ends."""
    hello = asked("GET /", b"Hello, world!\n")
    half = {"protocol": hello["protocol"], "opening": hello["opening"][:20], "budget": 20,
            "handshake": HEADERS_WITHIN + LINGER}
    json = "Content-Type: application/json"
    note = request("POST /notes", b'{"text": "a note"}', json)
    file = DownloadedByName.request
    # What guests say goes to all: one message of each.
    chat = {"protocol": Messages(handshake("/chat")), "opening": handshake("/chat"), "flood": frame(b"y" * 700),
            "crowd_budget": MIB, "drops": True}
    known = [
        ("http_hello", "", hello),
        # It gets no head, or one that ends too late.
        ("http_hello", "/half-head", half),
        # Holds the body.
        ("http_echo_server", "", {"protocol": Replied(request("POST /", b"word"), b"\r\n\r\nword"),
                                  "opening": request("POST /", b"", size=50_000_000), "budget": 64 * KIB,
                                  "memory": 300 * KIB}),
        ("http_routes", "", {"protocol": Replied(note, b'"a note"'),
                             "opening": request("POST /notes", b"", json, size=60_000), "budget": 50_000,
                             "memory": 200 * KIB}),
        ("http_stream", "", {"protocol": Greeted(200, request("GET /events")), "opening": request("GET /events"),
                             "flood": request("GET /events") * 40}),
        # A block of 256 KiB and a file for each.
        ("http_upload", "", {"arguments": ("DIRECTORY", "--at-once", "10000"), "descriptors": 2, "memory": 500 * KIB,
                             "protocol": Replied(request("PUT /victim", b"word"), b"\r\n\r\n"),
                             "opening": request("PUT /crowd", b"", size=1_000_000_000), "crowd_budget": 64 * MIB}),
        ("http_files", "", {"arguments": ("DIRECTORY",), "protocol": DownloadedByName(), "opening": file,
                            "flood": file * 100, "budget": 64 * KIB}),
        ("websocket_chat", "", chat),
    ]
    return [Target(name + suffix, name, **{"memory": 160 * KIB, "grace": HTTP_GRACE, **more})
            for name, suffix, more in known]


class HttpIdiom(Target):
    """One of http_idioms.cpp."""

    def command(self, case):
        program = os.path.join(os.path.dirname(case.options.idioms), "crowd_http_idioms")
        return [program, "--port", "0", "--backend", case.backend]


def http_idioms():
    endless = {"memory": 300 * KIB, "budget": MIB}
    known = [
        ("http-hello", asked("GET /hello/victim", b"Hello, victim!\n")),
        ("http-routes", asked("POST /users", b"\r\n\r\nalice", b"alice")),
        ("http-shared", asked("GET /count", b"text/plain")),
        ("http-without-a-coroutine", asked("GET /version", b"\r\n\r\n1.0\n")),
        ("http-errors", asked("POST /square", b"\r\n\r\n64\n", b"8")),
        ("http-metrics", asked("GET /metrics", b"simplenet_loop_turns_total")),
        ("http-lines", {**asked("POST /lines", b"2 lines", b"a\nb\n"), **endless,
                        "opening": request("POST /lines", b"", size=1_000_000), "flood": b"y" * 900 + b"\n"}),
        # A thousand writes for each request.
        ("http-stream", {**asked("GET /numbers", b"1000\n"), "budget": 200}),
        ("http-echo-body", {**asked("POST /back", b"word", b"word"), **endless,
                            "opening": request("POST /back", b"", size=1_000_000), "flood": b"y" * 4096}),
        ("http-continue", {**asked("PUT /picture", b" 204 ", b"word", "Content-Type: image/png"),
                           "opening": request("PUT /picture", b"", "Content-Type: image/png", size=1_000_000),
                           "flood": b"y" * 4096, "budget": 64 * KIB}),
        # Each request goes to another thread and back.
        ("http-send-file", {**asked("GET /report", b" 404 ", None, "Cookie: any"), "budget": 8 * KIB}),
        ("http-upgrade", {"protocol": Greeted(79, request("GET /upgrade", None, "Connection: Upgrade",
                                                           "Upgrade: lines")),
                          "opening": request("GET /upgrade", None, "Connection: Upgrade", "Upgrade: lines")}),
        ("http-websocket", {"protocol": Messages(handshake("/echo")), "opening": handshake("/echo"),
                            "flood": frame(b"y" * 900) * 10}),
        *(("http-websocket-" + name, {"protocol": Messages(opening), "opening": opening,
                                      "flood": frame(b"y" * 900) * 10})
          for name, opening in (("request", handshake("/rooms/any")),
                                ("accept", handshake("/members", "Cookie: any")))),
    ]
    return [HttpIdiom("page:" + name, "", **{"memory": 160 * KIB, "grace": HTTP_GRACE, **more}) for name, more in known]


# The cases of CI: each kind of trouble that a server has met, and each example, in half a minute.
SHORT = [
    ("echo_server", "storm"),
    ("echo_server", "urgent"),
    ("multicore_echo", "storm"),
    ("multicore_echo", "never-reads"),
    ("muduo_style_echo", "never-reads"),
    ("chat_many_rooms", "never-reads"),
    ("rolling_restart", "resets-in-the-middle"),
    ("behind_haproxy/half-header", "never-reads"),
    ("metrics/scrapes", "silent"),
    ("page:requests", "sends-slowly"),
    ("page:lengths", "leaves-in-the-middle"),
    ("page:lingering", "never-reads"),
    ("echo_server", "resets-in-the-middle"),
    ("chat_server", "never-reads"),
    ("chat_server", "closes-unread"),
    ("line_chat", "reads-slowly"),
    ("file_send", "leaves-in-the-middle"),
    ("file_send", "never-reads"),
    ("port_forward", "far-end-leaves"),
    ("port_forward", "far-end-resets"),
    ("port_forward", "resets-in-the-middle"),
    ("graceful_shutdown", "half-closes-after-sending"),
    ("task_dump", "garbage"),
    ("udp_echo", "datagrams-and-gone"),
    ("descriptor_passing", "sends-descriptors"),
    ("descriptor_passing", "never-reads"),
    ("page:readme/small-pool", "never-reads"),
    ("page:readme/small-pool", "reads-slowly"),
    ("page:or-return/small-pool", "never-reads"),
    ("page:idle-1s/small-pool", "never-reads"),
    ("page:lines", "sends-slowly"),
    ("page:split", "half-closes-at-once"),
    ("page:queued", "never-reads"),
    ("page:frames", "asks-and-leaves"),
    ("page:proxy", "urgent"),
    ("page:send-file", "leaves-in-the-middle"),
    ("page:readiness", "closes-unread"),
    ("page:handed-over", "silent"),
    ("page:room", "never-reads"),
    ("tls_echo_server", "never-reads"),
    ("tls_terminator/plain", "garbage"),
    ("http_hello", "never-reads"),
    ("http_files", "leaves-in-the-middle"),
    ("http_stream", "never-reads"),
    ("http_upload", "resets-in-the-middle"),
    ("websocket_chat", "never-reads"),
    ("page:http-echo-body", "never-reads"),
    ("page:http-websocket", "closes-unread"),
]
