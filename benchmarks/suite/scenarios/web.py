"""simplenet-httpd beside nginx and Apache: files, PHP, a reverse proxy and TLS; under `wrk` and under `ab`."""

import contextlib
import glob
import os
import re
import socket
import subprocess
import tempfile
import time

import web_servers

from .. import programs
from ..programs import Failed
from .cases import Case, web_server
from .http import ask, need_descriptors, run_wrk
from .tls import certificate

BACKENDS = ("epoll", "io_uring")
# Apache ends kept connections whenever all of its threads are busy, which clients under load count as failures.
CLOSES = {"apache"}
PHP_PROCESSES = 4
PHP = """
[global]
error_log = {place}/php.log
daemonize = no
[www]
listen = {place}/php.sock
listen.mode = 0666
user = www-data
group = www-data
pm = static
pm.max_children = {processes}
"""


def httpd(tools, backend, *arguments, name=None, ours=True):
    program = os.path.join(tools.build, "programs", "httpd", "simplenet-httpd")
    found = web_server(tools, "httpd", "--program", program, "--backend", backend, *arguments,
                       name=name or f"ours_{backend}", ours=ours, backend=backend)  # fmt: skip
    if not os.access(program, os.X_OK):
        found.missing = "simplenet-httpd was not built: install libtomlplusplus-dev, libcli11-dev and libspdlog-dev"
    elif backend == "io_uring" and not tools.has_io_uring():
        found.missing = "this kernel or sandbox refuses io_uring"
    return found


def bare(tools, tls, *arguments):
    """The system calls of a web server alone: one receive and one send for each message."""
    plain = {"bare_epoll": "bare_web_server", "bare_io_uring": "bare_uring_web_server"}
    for name, program in ({"bare_epoll": "tls_bare_server"} if tls else plain).items():
        backend = "io_uring" if "uring" in name else "epoll"
        built = tools.subject(name, program, backend=backend, needs="liburing-dev" if backend == "io_uring" else "")
        found = web_server(tools, "bare", "--program", tools.path(program), *arguments, name=name, backend=backend)
        found.missing = built.missing
        yield found


def place_with(size):
    """A folder of web_servers.py, with a file of that many bytes and a page in PHP."""
    place = tempfile.TemporaryDirectory(prefix="simplenet-web-")
    web_servers.make_file(place.name, size)
    www = os.path.join(place.name, "www")
    with open(os.path.join(www, "hello.php"), "w") as file:
        file.write('<?php echo "Hello, world!\\n";')
    os.mkdir(os.path.join(www, "proxied"))
    os.link(os.path.join(www, "file"), os.path.join(www, "proxied", "file"))
    return place


@contextlib.contextmanager
def php(tools, place):
    """PHP-FPM; the figures of a server do not include its time."""
    found = sorted(filter(None, [web_servers.find("php-fpm"), *glob.glob("/usr/sbin/php-fpm*")]))
    if not found:
        raise Failed("PHP-FPM is not installed (php-fpm)")
    file = os.path.join(place, "php.conf")
    with open(file, "w") as opened:
        opened.write(PHP.format(place=place, processes=PHP_PROCESSES))
    process = subprocess.Popen(
        [found[-1], "-F", "-n", "-y", file],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=programs.pinned(tools.settings.client_cpu),
    )  # fmt: skip
    try:
        path = os.path.join(place, "php.sock")
        for _ in range(1000):
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(path) == 0:
                    break
            time.sleep(0.01)
        else:
            raise Failed("PHP-FPM did not start")
        yield path
    finally:
        programs.ask_to_end(process)


@contextlib.contextmanager
def upstream(tools, place):
    """Our own server of the library, which answers from memory, for all who pass on to it."""
    server = tools.subject("upstream", "http_server", "--port", 0, "--root", os.path.join(place, "www"), "--small", 16384)
    if server.missing:
        raise Failed(server.missing)
    with programs.Server(server.command, tools.settings.client_cpu) as started:
        yield started.port


@contextlib.contextmanager
def running(tools, subject, place, with_php=False, with_upstream=False, php_keep=None):
    """The subject, with what stands behind it."""
    more = ["--place", place]
    if php_keep is not None:
        more += ["--php-keep", str(php_keep)]
    with contextlib.ExitStack() as stack:
        if with_php:
            more += ["--php", stack.enter_context(php(tools, place))]
        if with_upstream:
            more += ["--upstream", str(stack.enter_context(upstream(tools, place)))]
        yield stack.enter_context(programs.Server(subject.command + more, tools.settings.server_cpu))


def servers(tools, *arguments, kinds=("nginx", "nginx_debian", "apache")):
    debian = ["--log", "combined"]  # as Debian configures it
    return [
        *(httpd(tools, backend, *arguments) for backend in BACKENDS),
        *(web_server(tools, kind, *(debian if kind == "apache" else []), *arguments) for kind in kinds),
    ]


def configurations(subjects, behind):
    """[(name, configuration)] of each subject, for people: with which the figures were measured."""
    shown = []
    for each in subjects:
        if not each.missing and not each.twin:
            text = subprocess.run([*each.command, *behind, "--show"], capture_output=True, text=True, check=False)
            shown.append((each.name, text.stdout or text.stderr))
    return shown


def shown_behind(place, with_php=False, with_upstream=False, php_keep=None):
    return [
        *("--place", place, "--port", "8080"),
        *(("--php", f"{place}/php.sock") if with_php else ()),
        *(("--php-keep", str(php_keep)) if php_keep is not None else ()),
        *(("--upstream", "8081") if with_upstream else ()),
    ]


# --- wrk ----------------------------------------------------------------------------------------------

MS = {"us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9}


def percentile_ns(text, which):
    found = re.search(rf"^\s+{which}%\s+([\d.]+)(us|ms|s|m)$", text, re.M)
    return float(found[1]) * MS[found[2]]


def answers(tools, name, path, connections=100, size=0, kinds=None, tls=False, behind=None, two=False, scenario="web_answers",
            with_bare=True):  # fmt: skip
    """`wrk` asks for `path`; `behind` are the arguments of running(). With `two` the client has its own processor."""
    settings = tools.settings
    behind = behind or {}
    place = place_with(size)
    common = []
    if tls:
        pair = certificate(tools)
        common = ["--tls", pair[1], pair[3]]

    def measure(subject, _, place=place):
        seconds = max(1, round(settings.seconds))
        how = {
            "scheme": "https" if tls else "http",
            "cpu": settings.client_cpu if two or behind else settings.server_cpu,
            "may_close": subject.name in CLOSES,
        }
        with running(tools, subject, place.name, **behind) as server:
            run_wrk(tools, server, path, connections, 1, **how)
            text, taken, wall = run_wrk(tools, server, path, connections, seconds, **how)
        count = int(re.search(r"(\d+) requests in", text)[1])
        return {
            "server_cpu_ns": taken / count,
            "requests_per_s": count / wall,
            "p50_ns": percentile_ns(text, 50),
            "p99_ns": percentile_ns(text, 99),
        }

    subjects = servers(tools, *common, **({"kinds": kinds} if kinds else {}))
    if with_bare:
        subjects += bare(tools, tls, *common)
    subjects = tools.chosen(subjects)
    return Case(
        scenario,
        name,
        subjects,
        measure,
        ["server_cpu_ns", "p99_ns"] if two else ["server_cpu_ns"],
        seconds=2.8 + settings.seconds,
        configurations=lambda: configurations(subjects, shown_behind(place.name, **behind)),
    )


def need_wrk():
    if not programs.have("wrk"):
        raise Failed("wrk is not installed (wrk)")


def web_answers(tools):
    """Processor time of a request, PHP-FPM and the server behind a proxy not included."""
    need_wrk()
    # Apache has no fixed answer.
    yield answers(tools, "hello_100", "/hello", kinds=("nginx", "nginx_debian"))
    yield answers(tools, "file_612B_100", "/file", size=612)
    yield answers(tools, "file_10KiB_100", "/file", size=10 * 1024)
    # The bare server sends what a socket takes at once.
    yield answers(tools, "file_1MiB_100", "/file", size=2**20, with_bare=False)
    yield answers(tools, "tls_612B_100", "/file", size=612, tls=True)
    yield answers(tools, "proxied_612B_100", "/proxied/file", size=612, behind={"with_upstream": True})
    yield answers(tools, "php_4", "/hello.php", connections=PHP_PROCESSES, behind={"with_php": True})


def web_latency(tools):
    """How long the slowest of a hundred wait, with a thousand connections that all ask at once."""
    need_wrk()
    if tools.settings.one_processor:
        raise Failed("server and client would be on one processor")
    kinds = ("nginx", "apache")  # 1000 are more than Debian's nginx takes
    yield answers(tools, "file_612B_1000", "/file", 1000, 612, kinds, two=True, scenario="web_latency", with_bare=False)


# --- logs ---------------------------------------------------------------------------------------------


def web_log(tools):
    """What a line of the access log costs: the same server with a log beside itself without."""
    need_wrk()
    settings = tools.settings
    place = place_with(612)
    subjects = []
    for backend in BACKENDS:
        for form in ("combined", "json"):
            subjects.append(httpd(tools, backend, "--log", form, name=f"ours_{backend}_{form}"))
        subjects.append(httpd(tools, backend, name=f"no_log_{backend}", ours=False))
    subjects.append(web_server(tools, "nginx"))
    subjects.append(web_server(tools, "nginx", "--log", "combined", name="nginx_combined"))

    def measure(subject, _, place=place):
        seconds = max(1, round(settings.seconds))
        with running(tools, subject, place.name) as server:
            run_wrk(tools, server, "/hello", 100, 1)
            text, taken, _ = run_wrk(tools, server, "/hello", 100, seconds)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(place.name, "access.log"))
        return {"server_cpu_ns": taken / int(re.search(r"(\d+) requests in", text)[1])}

    yield Case("web_log", "hello_100", tools.chosen(subjects), measure, ["server_cpu_ns"], seconds=2.3 + settings.seconds)


# --- ab -----------------------------------------------------------------------------------------------

PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 100)


def ab(tools, name, path, keep, size=0, behind=None, requests=None):
    settings = tools.settings
    kinds = ("nginx", "apache")  # so many are more than Debian's nginx takes
    requests = requests or settings.web_requests
    connections = min(settings.web_connections, requests)
    behind = behind or {}
    place = place_with(size)

    def measure(subject, _, place=place):
        command = ["ab", "-q", "-r", *(["-k"] if keep else []), "-c", str(connections), "-n", str(requests)]
        with running(tools, subject, place.name, **behind) as server:
            before = programs.processor_ns_of_all(server.pid)
            said = programs.run_text(
                [*command, f"http://127.0.0.1:{server.port}{path}"], settings.client_cpu, settings.web_timeout
            )
            taken = programs.processor_ns_of_all(server.pid) - before
        figures = {"server_cpu_ns": taken / requests}
        rate = re.search(r"^Requests per second:\s+([\d.]+)", said, re.M)
        wrong = [int(each) for each in re.findall(r"^(?:Failed|Non-2xx).*:\s+(\d+)", said, re.M)]
        if not rate or (sum(wrong) > 0 and subject.name not in CLOSES):
            raise Failed(f"ab: {sum(wrong)} requests failed" if rate else f"ab: {said.strip()[-100:]}")
        figures["failed"] = sum(wrong) / requests
        figures["requests_per_s"] = float(rate[1])
        for which in PERCENTILES:
            figures[f"p{which}_ms"] = float(re.search(rf"^\s+{which}%\s+(\d+)", said, re.M)[1])
        return figures

    subjects = tools.chosen(servers(tools, kinds=kinds))
    return Case(
        "web_ab",
        f"{name}{'_k' if keep else ''}_c{connections}",
        subjects,
        measure,
        ["server_cpu_ns", "requests_per_s"],
        seconds=0.5 + requests / 25000,
        repeats=2 if settings.mode == "quick" else 0,
        configurations=lambda: configurations(subjects, shown_behind(place.name, **behind)),
    )


def web_ab(tools):
    """`ab` with a new connection for each request and with -k, and its table of percentiles."""
    if not programs.have("ab"):
        raise Failed("ab is not installed (apache2-utils)")
    for keep in (False, True):
        yield ab(tools, "file_612B", "/file", keep, size=612)
        # A tenth as many, which take as long. Kept connections of more clients than processes would occupy the processes
        # for ever in nginx, and the rest of the clients would not be served.
        behind = {"with_php": True, "php_keep": 0}
        yield ab(tools, "php", "/hello.php", keep, behind=behind, requests=max(1000, tools.settings.web_requests // 10))


# --- counts -------------------------------------------------------------------------------------------


def web_idle_memory(tools):
    """The memory of all processes of a server with so many connections, each answered once: what it has at all
    counts, because nginx makes the memory of connections ready when it starts."""
    settings = tools.settings
    count = settings.web_idle_connections
    place = place_with(612)

    def measure(subject, _, place=place):
        need_descriptors(count)
        with running(tools, subject, place.name) as server:
            before = programs.anonymous_bytes_of_all(server.pid)
            with contextlib.ExitStack() as held:
                for _ in range(count):
                    ask(held.enter_context(socket.create_connection(("127.0.0.1", server.port))))
                after = programs.anonymous_bytes_of_all(server.pid)
        return {"bytes_per_connection": after / count, "added_bytes": (after - before) / count}

    subjects = tools.chosen(servers(tools, kinds=("nginx",)))
    yield Case("web_idle_memory", str(count), subjects, measure, ["bytes_per_connection"], seconds=4, repeats=2)


def web_start(tools):
    """From the start of the program to its first answer."""
    place = place_with(612)

    def measure(subject, _, place=place):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        given = web_servers.arguments([*subject.command[2:], "--place", place.name, "--port", str(port)])
        command = web_servers.COMMANDS[given.kind](given)
        begin = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=programs.pinned(tools.settings.server_cpu),
        )  # fmt: skip
        try:
            while True:
                try:
                    with socket.create_connection(("127.0.0.1", port)) as stream:
                        ask(stream)
                    break
                except ConnectionRefusedError:
                    if process.poll() is not None or time.monotonic() - begin > 20:
                        raise Failed("the server did not start") from None
                    time.sleep(0.0005)
            return {"start_ms": (time.monotonic() - begin) * 1e3}
        finally:
            process.terminate()
            process.wait(timeout=30)

    yield Case("web_start", "hello", tools.chosen(servers(tools, kinds=("nginx",))), measure, ["start_ms"], seconds=0.3)
