#!/usr/bin/env python3
"""Compares the codec of simplenet::http with llhttp (httptools) and h11 on mutated requests.

Two rules. No message that the codec accepts is refused by both others. What the codec and another
parser both accept has the same end, body, method, target and fields; where the codec waits for more
of a body, no other one has its end.

Run by hand, with both packages installed:

    ninja -C build/release simplenet_http_verdicts
    python3 tests/http/differential/compare_parsers.py --seed 1 --count 1000000 \\
        build/release/tests/http/differential/simplenet_http_verdicts

Ends with 1 and prints the messages if a rule is broken; with 77 if a package is missing.
"""

import argparse
import collections
import random
import struct
import subprocess
import sys
import threading

try:
    import h11
    import httptools
except ImportError as missing:
    print(f"skipped: {missing}; this comparison needs the Python packages httptools and h11", file=sys.stderr)
    sys.exit(77)

SEEDS = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /index.html?x=1&y=%20 HTTP/1.1\r\nHost: example.org:8080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
    b"HEAD / HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"\r\n\r\nGET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    b"PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\nhello worldGET / HTTP/1.1\r\nHost: b\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=b;c=\"d;e\"\r\nhello\r\n1\r\nx\r\n00\r\n\r\nGET / HTTP/1.1\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\nX-Two:  b \r\n\r\n",
    b"DELETE /p HTTP/1.1\r\nhOST: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
    b"GET http://example.org/x HTTP/1.1\r\nHost: example.org\r\n\r\n",
    b"GET /u HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
    b"GET /f HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Tab:\tb\t\r\nX-Text: a\xe4b \xff\r\nX-List: a, b,,c\r\n\r\n",
    b"PATCH /p HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\nContent-Length: 2\r\n\r\nab",
]

# What mutations insert: bytes and words that parsers stumble over.
WORDS = [bytes([each]) for each in b"\r\n\0 \t:;,\"\\/?#%=-+xX0\x0b\x0c\x7f\x80\xa0\xff"] + [
    b"\r\n", b"\n\n", b"\r\r\n", b"\r\n\r\n", b"\r\n ", b" :", b": ", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0",
    b"http/1.1", b"Host: b\r\n", b"Content-Length: 1\r\n", b"Content-Length: +1\r\n", b"Content-Length: 0x1\r\n",
    b"Content-Length: 18446744073709551617\r\n", b"Content_Length: 9\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding:\r\n", b"Connection: close\r\n",
    b"Expect: 100-continue\r\n", b"chunked", b", chunked", b"chunked, ", b"identity", b"gzip", b"close", b"0\r\n\r\n", b"1\r\na\r\n",
    b"ffffffffffffffff", b"10000000000000000", b"-1", b"+1", b"0x1", b"00000000", b";a=b", b";a=\"", b"X: y\r\n", b"[::1]",
    b"Transfer-Encoding : chunked\r\n", b"A" * 40,
]


def mutated(rng):
    """A request with one to four mutations."""
    text = bytearray(rng.choice(SEEDS))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(9)
        if kind == 0:
            text[at:at] = rng.choice(WORDS)
        elif kind == 1:
            text[at:at + 1] = rng.choice(WORDS)
        elif kind == 2:
            text[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            del text[at:at + rng.choice((1, 1, 2, 5))]
        elif kind == 4:
            part = text[at:at + rng.randrange(1, 30)]
            to = rng.randrange(len(text) + 1)
            text[to:to] = part
        elif kind == 5:
            lines = bytes(text).split(b"\r\n")
            line = rng.choice(lines)
            lines.insert(rng.randrange(len(lines) + 1), line)
            text = bytearray(b"\r\n".join(lines))
        elif kind == 6:
            other = rng.choice(SEEDS)
            text[at:] = other[rng.randrange(len(other)):]
        elif kind == 7:
            # At the beginning of a line: most words are lines, or break one.
            starts = [0] + [each + 2 for each in range(len(text) - 1) if text[each:each + 2] == b"\r\n"]
            at = rng.choice(starts)
            text[at:at] = rng.choice(WORDS)
        elif text[at:at + 1].isalpha():
            text[at] ^= 0x20
    return bytes(text)


# What a parser made of a message. `end` is None if it waits for more.
Message = collections.namedtuple("Message", "end method target fields body")
UPGRADED = "upgraded"


class Sink:
    """The callbacks of httptools."""

    def __init__(self):
        self.target = b""
        self.fields = []
        self.body = b""
        self.complete = 0
        self.in_body = False

    def on_url(self, part):
        if not self.complete:
            self.target += part

    def on_header(self, name, value):
        if not self.complete and not self.in_body:
            self.fields.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self):
        self.in_body = True

    def on_body(self, part):
        if not self.complete:
            self.body += part

    def on_message_complete(self):
        self.complete += 1


def by_llhttp(text, end):
    """The first message by llhttp, or None if it is refused. `end`: where it is expected to end, or None.

    httptools does not tell where a message ended, so the bytes before the expected end come first.
    """
    sink = Sink()
    parser = httptools.HttpRequestParser(sink)
    at = 0
    found = None
    for upto in (len(text),) if end is None else (end - 1, end):
        try:
            parser.feed_data(text[at:upto])
        except httptools.HttpParserUpgrade:
            # httptools ends such a message behind its head, whatever the body: there is nothing to compare.
            return UPGRADED
        except httptools.HttpParserError:
            if not sink.complete:
                return None
        if sink.complete:
            found = upto
            break
        at = upto
    return Message(found, parser.get_method() if found else b"", sink.target, sink.fields, sink.body)


def by_h11(text):
    """The first message by h11, or None if it is refused."""
    # RFC 9112 section 2.2: a server should skip empty lines before a request. h11 does not.
    skipped = 0
    while text.startswith(b"\r\n"):
        text = text[2:]
        skipped += 2
    connection = h11.Connection(h11.SERVER)
    head = None
    body = b""
    try:
        connection.receive_data(text)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                return Message(None, b"", b"", [], body)
            if isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                end = skipped + len(text) - len(connection.trailing_data[0])
                fields = [(name.lower(), value.strip(b" \t")) for name, value in head.headers]
                return Message(end, head.method, head.target, fields, body)
    except h11.RemoteProtocolError:
        return None


def unhex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def by_us(line):
    """The verdict of the codec: "refused", "head", or a message."""
    words = line.split(" ")
    if words[0] == "refused":
        return "refused"
    if words[0] == "incomplete":
        return "head" if words[1] == "head" else Message(None, b"", b"", [], b"")
    end, _, _, _, method, target, body, fields = words[1:]
    pairs = [each.split("=") for each in fields.split(",") if each]
    named = [(unhex(name).lower(), unhex(value)) for name, value in pairs]
    return Message(int(end), unhex(method), unhex(target), named, unhex(body))


class Comparison:
    def __init__(self):
        self.counts = collections.Counter()
        self.findings = 0

    def finding(self, kind, text, *messages):
        self.counts[kind] += 1
        self.findings += 1
        if self.findings <= 20:
            print(f"FINDING: {kind}: {text!r}")
            for each in messages:
                print(f"    {each}")

    def compare(self, text, line):
        ours = by_us(line)
        if isinstance(ours, str):
            self.counts["refused by ours" if ours == "refused" else "incomplete head"] += 1
            return
        self.counts["accepted by ours" if ours.end else "incomplete body"] += 1
        others = {"llhttp": by_llhttp(text, ours.end), "h11": by_h11(text)}
        refusals = 0
        for name, other in others.items():
            if other is None:
                refusals += 1
                self.counts[f"refused by {name} only" if ours.end else f"incomplete, refused by {name}"] += 1
            elif other is UPGRADED:
                self.counts[f"upgraded by {name}"] += 1
            elif ours.end is None:
                if other.end is not None:
                    self.finding(f"ours waits, {name} does not", text, line, other)
            elif ours != self.normal(other, ours):
                self.finding(f"ours and {name} differ", text, ours, other)
            else:
                self.counts[f"same by {name}"] += 1
        if refusals == 2 and ours.end is not None:
            self.finding("accepted by ours alone", text, ours)

    @staticmethod
    def normal(other, ours):
        # h11 moves Host to the front and lowers the case of the coding; both mean the same.
        def comparable(fields):
            return sorted((name, value.lower() if name == b"transfer-encoding" else value) for name, value in fields)

        if comparable(other.fields) == comparable(ours.fields):
            return other._replace(fields=ours.fields)
        return other


def verdicts(program, cases):
    """The lines of the program for the cases."""
    def write():
        for each in cases:
            program.stdin.write(struct.pack("<I", len(each)) + each)
        program.stdin.flush()

    writer = threading.Thread(target=write)
    writer.start()
    for _ in cases:
        yield program.stdout.readline().decode("ascii").rstrip("\n")
    writer.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the built simplenet_http_verdicts")
    parser.add_argument("--count", type=int, default=100_000, help="mutated requests (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2_000)
    options = parser.parse_args()

    rng = random.Random(options.seed)
    comparison = Comparison()
    with subprocess.Popen([options.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        done = 0
        while done < options.count:
            cases = [mutated(rng) for _ in range(min(options.batch, options.count - done))]
            if done == 0:
                cases = SEEDS + cases
            for text, line in zip(cases, verdicts(program, cases)):
                comparison.compare(text, line)
            done += options.batch
        program.stdin.close()

    for kind, count in sorted(comparison.counts.items()):
        print(f"{count:10} {kind}")
    print(f"{comparison.findings} findings")
    return 1 if comparison.findings else 0


if __name__ == "__main__":
    sys.exit(main())
