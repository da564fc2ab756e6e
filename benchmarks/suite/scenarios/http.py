"""HTTP servers beside nginx: `wrk` asks for a fixed answer and for files."""

import os
import re
import resource
import socket
import sys
import tempfile
import time

import web_servers

from .. import programs
from ..programs import Failed
from .cases import Case, web_server

BACKENDS = ("epoll", "io_uring")
# What a browser sends, 850 bytes with the request line.
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7",
    "Accept-Encoding": "identity",
    "Accept-Language": "en-GB,en;q=0.9,de-DE;q=0.8,de;q=0.7,en-US;q=0.6",
    "Cache-Control": "max-age=0",
    "Cookie": "session=7d1f0b6c9a8e4f53b2c1d0e9f8a7b6c5; theme=dark; consent=functional.statistics; seen=1699999999",
    "Sec-Ch-Ua": '"Google Chrome";v="119", "Chromium";v="119", "Not?A_Brand";v="24"',
    "Sec-Ch-Ua-Mobile": "?0",
    "Sec-Ch-Ua-Platform": '"Linux"',
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-User": "?1",
    "Upgrade-Insecure-Requests": "1",
}
PIPELINED = """
init = function(args)
    local all = {}
    for each = 1, 16 do all[each] = wrk.format("GET", wrk.path) end
    joined = table.concat(all)
end
request = function() return joined end
"""


def servers(tools, place, small):
    def own(backend):
        arguments = ["--port", 0, "--backend", backend, "--root", os.path.join(place, "www"), "--small", small]
        return tools.subject(f"ours_{backend}", "http_server", *arguments, ours=True, backend=backend, needs="zlib1g-dev")

    return [*map(own, BACKENDS), *(web_server(tools, name, "--place", place) for name in ("nginx", "nginx_defaults"))]


def beast(tools):
    """Only a fixed answer: it has no files of its own."""
    return tools.subject("beast", "beast_server", "--port", 0, needs="libboost-dev 1.81 (Boost.Beast)")


def wrk(tools, server, path, connections, seconds, fields, script=None):
    """(processor time of the server, wall time, number of answers)"""
    text, taken, wall = run_wrk(tools, server, path, connections, seconds, fields, script)
    return taken, wall, int(re.search(r"(\d+) requests in", text)[1])


def run_wrk(tools, server, path, connections, seconds, fields=None, script=None, scheme="http", cpu=None, may_close=False):
    """(what wrk says, processor time of the server, wall time); with `may_close` the server may end kept connections."""
    cpu = tools.settings.server_cpu if cpu is None else cpu
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "10", "--latency"]
    for name, value in (fields or {}).items():
        command += ["-H", f"{name}: {value}"]
    if script:
        command += ["-s", script]
    command.append(f"{scheme}://127.0.0.1:{server.port}{path}")
    before, begin = programs.processor_ns_of_all(server.pid), time.monotonic()
    text = programs.run_text(command, cpu, tools.settings.timeout)
    taken, wall = programs.processor_ns_of_all(server.pid) - before, time.monotonic() - begin
    wrong = re.search(r"Non-2xx.*|Socket errors.*", text)
    if wrong and not (may_close and re.fullmatch(r"Socket errors: connect 0, read \d+, write 0, timeout 0", wrong[0])):
        raise Failed(wrong[0])
    return text, taken, wall


def answers(tools, name, path, connections=100, size=0, small=0, fields=None, pipelined=1):
    settings = tools.settings
    place = tempfile.TemporaryDirectory(prefix="simplenet-http-")
    web_servers.make_file(place.name, size)
    script = None
    if pipelined > 1:
        script = os.path.join(place.name, "pipelined.lua")
        with open(script, "w") as file:
            file.write(PIPELINED)

    def measure(subject, _, place=place):
        seconds = max(1, round(settings.seconds))
        with programs.Server(subject.command, settings.server_cpu) as server:
            wrk(tools, server, path, connections, 1, fields or {}, script)
            taken, wall, count = wrk(tools, server, path, connections, seconds, fields or {}, script)
        return {"server_cpu_ns": taken / count, "requests_per_s": count / wall}

    subjects = servers(tools, place.name, small)
    if path == "/hello":
        subjects.append(beast(tools))
    return Case(
        "http_answers",
        name,
        tools.chosen(subjects),
        measure,
        ["server_cpu_ns"],
        seconds=2.3 + settings.seconds,
    )


def http_answers(tools):
    """Processor time of a request."""
    if not programs.have("wrk"):
        raise Failed("wrk is not installed (wrk)")
    yield answers(tools, "hello_100", "/hello")
    yield answers(tools, "browser_100", "/hello", fields=BROWSER)
    yield answers(tools, "hello_1", "/hello", connections=1)
    yield answers(tools, "pipelined_16", "/hello", pipelined=16)
    yield answers(tools, "file_612B_100", "/file", size=612)
    yield answers(tools, "memory_612B_100", "/file", size=612, small=16384)
    yield answers(tools, "file_1MiB_100", "/file", size=2**20)


def ask(stream, times=1):
    for _ in range(times):
        stream.sendall(b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if b"Hello" not in stream.recv(4096):
            raise Failed("a wrong answer")


def need_descriptors(connections):
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < connections + 100:
        raise Failed(f"{connections + 100} descriptors needed, the limit is {soft}")


def http_idle_memory(tools):
    """Growth of RssAnon for each connection that has been answered once and is then silent."""
    settings = tools.settings
    count = settings.http_idle_connections
    place = tempfile.TemporaryDirectory(prefix="simplenet-http-")
    web_servers.make_file(place.name, 0)

    def measure(subject, _, place=place):
        need_descriptors(count)
        with programs.Server(subject.command, settings.server_cpu) as server:
            before = programs.anonymous_bytes(server.pid)
            held = []
            for _ in range(count):
                held.append(socket.create_connection(("127.0.0.1", server.port)))
                ask(held[-1])
            after = programs.anonymous_bytes(server.pid)
            for each in held:
                each.close()
        return {"bytes_per_connection": (after - before) / count}

    subjects = tools.chosen(servers(tools, place.name, 0))
    yield Case("http_idle_memory", str(count), subjects, measure, ["bytes_per_connection"], seconds=2, repeats=2)


def http_allocations(tools):
    """malloc(3) and relatives per request without a body, in the steady state."""
    counter = tools.path("count_allocations.so")
    trips = tools.settings.allocation_round_trips
    place = tempfile.TemporaryDirectory(prefix="simplenet-http-")
    web_servers.make_file(place.name, 0)

    def measure(subject, _, place=place):
        if not os.path.exists(counter):
            raise Failed("count_allocations.so was not built")
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(8))
            file.flush()
            environment = {"LD_PRELOAD": counter, "COUNT_ALLOCATIONS": file.name}
            with programs.Server(subject.command, tools.settings.server_cpu, environment) as server:
                with socket.create_connection(("127.0.0.1", server.port)) as stream:
                    ask(stream, trips)
                    counts = []
                    for _ in range(2):
                        ask(stream, trips)
                        with open(file.name, "rb") as now:
                            counts.append(int.from_bytes(now.read(8), sys.byteorder))
        return {"allocations": (counts[1] - counts[0]) / trips}

    ours = [each for each in tools.kept(servers(tools, place.name, 0)) if each.ours]
    yield Case("http_allocations", "hello", ours, measure, ["allocations"], seconds=1.5, repeatable=True)
