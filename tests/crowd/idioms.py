#!/usr/bin/env python3
"""Maps each idiom of each page to its targets in the crowd, or to the reason why no client can be hostile.

Every block of code of README.md and docs/usage/ is listed here, or this program fails: people deploy what the
pages teach.
"""

import pathlib
import re
import sys

import targets

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SNIPPET = re.compile(r"<!-- snippet: (\S+) (.+?) -->")

# A region of a file: the targets that serve with it. Targets whose name ends with "/..." are variants.
SERVED = {
    "docs/snippets/callbacks.cpp room": ["page:room"],
    "docs/snippets/callbacks.cpp serve": ["page:room"],
    "docs/snippets/cancellation.cpp idle": ["page:idle", "page:idle-1s"],
    "docs/snippets/cancellation.cpp level": ["page:polite"],
    "docs/snippets/cancellation.cpp loop": ["page:loop"],
    "docs/snippets/cancellation.cpp offset": ["page:patiently"],
    "docs/snippets/cancellation.cpp timeout": ["page:timeout"],
    "docs/snippets/coroutines.cpp gather": ["page:together"],
    "docs/snippets/coroutines.cpp or_return": ["page:ask-briefly", "page:or-return"],
    "docs/snippets/coroutines.cpp run_on": ["page:run-on"],
    "docs/snippets/coroutines.cpp task": ["page:ask"],
    "docs/snippets/coroutines.cpp when_all": ["page:together"],
    "docs/snippets/coroutines.cpp when_any": ["page:together"],
    "docs/snippets/errors.cpp own": ["page:digits"],
    "docs/snippets/errors.cpp read all": ["page:read-all"],
    "docs/snippets/errors.cpp transfer": ["page:read-all"],
    "docs/snippets/http.cpp accept websocket": ["page:http-websocket-accept"],
    "docs/snippets/http.cpp continue": ["page:http-continue"],
    "docs/snippets/http.cpp echo body": ["page:http-echo-body"],
    "docs/snippets/http.cpp errors": ["page:http-errors"],
    "docs/snippets/http.cpp files": ["http_files"],
    "docs/snippets/http_first.cpp hello": ["page:http-hello", "http_hello"],
    "docs/snippets/http.cpp lines": ["page:http-lines"],
    "docs/snippets/http.cpp metrics": ["page:http-metrics"],
    "docs/snippets/http.cpp routes": ["page:http-routes", "http_routes"],
    "docs/snippets/http.cpp send_file": ["page:http-send-file"],
    "docs/snippets/http.cpp shared": ["page:http-shared"],
    "docs/snippets/http.cpp stream": ["page:http-stream"],
    "docs/snippets/http.cpp upgrade": ["page:http-upgrade"],
    "docs/snippets/http.cpp websocket": ["page:http-websocket"],
    "docs/snippets/http.cpp websocket request": ["page:http-websocket-request"],
    "docs/snippets/http.cpp without a coroutine": ["page:http-without-a-coroutine"],
    "docs/snippets/readme.cpp echo": ["page:readme"],
    "docs/snippets/seeing_inside.cpp name": ["page:named"],
    "docs/snippets/servers.cpp activation": ["rolling_restart"],
    "docs/snippets/servers.cpp info": ["page:greeting"],
    "docs/snippets/servers.cpp run_server": ["multicore_echo"],
    "docs/snippets/servers.cpp run_server options": ["multicore_echo"],
    "docs/snippets/servers.cpp server_stop": ["page:requests"],
    "docs/snippets/servers.cpp successor": ["rolling_restart"],
    "docs/snippets/servers.cpp tcp_server": ["rolling_restart"],
    "docs/snippets/sockets.cpp adopt": ["page:readme"],
    "docs/snippets/sockets.cpp release": ["page:handed-over"],
    "docs/snippets/streams.cpp any": ["page:any"],
    "docs/snippets/streams.cpp concept": ["page:counting"],
    "docs/snippets/streams.cpp ends": ["page:messages"],
    "docs/snippets/streams.cpp frames": ["page:lengths"],
    "docs/snippets/streams.cpp lines": ["page:lines"],
    "docs/snippets/streams.cpp lingering": ["page:lingering"],
    "docs/snippets/streams.cpp message": ["page:messages"],
    "docs/snippets/streams.cpp read until": ["page:read-until"],
    "docs/snippets/streams.cpp readable": ["page:batches"],
    "docs/snippets/streams.cpp split": ["page:split"],
    "docs/snippets/synchronisation.cpp broadcast": ["chat_many_rooms"],
    "docs/snippets/synchronisation.cpp condition": ["page:letters"],
    "docs/snippets/synchronisation.cpp mutex": ["page:mutex"],
    "docs/snippets/synchronisation.cpp oneshot": ["page:questions"],
    "docs/snippets/synchronisation.cpp semaphore": ["page:semaphore"],
    "docs/snippets/tls.cpp echo": ["tls_echo_server"],
    "docs/snippets/tls.cpp mutual": ["mtls"],
    "docs/snippets/tls.cpp reload": ["tls_echo_server"],
    "docs/snippets/tls.cpp run_server": ["tls_echo_server"],
    "docs/snippets/writing.cpp broadcast": ["page:broadcast"],
    "docs/snippets/writing.cpp copy": ["page:copy", "page:copy-to-local"],
    "docs/snippets/writing.cpp end": ["page:goodbye"],
    "docs/snippets/writing.cpp marks": ["page:queued"],
    "docs/snippets/writing.cpp pressure": ["page:frames", "page:queued"],
    "docs/snippets/writing.cpp proxy": ["page:proxy"],
    "docs/snippets/writing.cpp scratch": ["page:scratch"],
    "examples/descriptor_passing.cpp send": ["descriptor_passing"],
    "examples/http_stream.cpp events": ["http_stream"],
    "examples/http_upload.cpp file": ["http_upload"],
    "examples/http_upload.cpp fill": ["http_upload"],
    "examples/http_upload.cpp receive": ["http_upload"],
    "examples/websocket_chat.cpp listen": ["websocket_chat"],
    "examples/websocket_chat.cpp route": ["websocket_chat"],
    "examples/websocket_chat.cpp talk": ["websocket_chat"],
    "examples/muduo_style_echo.cpp echo": ["muduo_style_echo"],
    "examples/muduo_style_echo.cpp server": ["muduo_style_echo"],
    "examples/echo_server.cpp accept": ["echo_server"],
    "examples/echo_server.cpp serve": ["echo_server"],
    "examples/file_send.cpp send": ["file_send", "page:send-file"],
    "examples/watch_files.cpp wait": ["page:readiness"],
}

BLOCKING = "serves one client after the other, so an idle one delays all: a property of blocking sockets"
CLIENT = "a client; its only server is covered by the refusals and the tests of the examples"
NO_PEER = "no peer is involved"
CALLBACKS = "handlers of a connection like those of muduo_style_echo; its limits are in connection_test"
BACKENDS = "it needs a backend; tests/http/fastcgi and tests/http/proxy have hostile ones, and hostile clients"
WHOLE = "a line or an option of a program that is covered elsewhere"
EXEMPT = {
    BLOCKING: ["docs/snippets/sockets.cpp blocking"],
    CLIENT: [
        "docs/snippets/callbacks.cpp client",
        "docs/snippets/clients.cpp client",
        "docs/snippets/clients.cpp events",
        "docs/snippets/clients.cpp give up",
        "docs/snippets/clients.cpp limit",
        "docs/snippets/clients.cpp options",
        "docs/snippets/clients.cpp outbox",
        "docs/snippets/clients.cpp pool",
        "docs/snippets/clients.cpp silence",
        "docs/snippets/clients.cpp testing",
        "docs/snippets/http.cpp get", "docs/snippets/http.cpp send", "docs/snippets/http.cpp upload",
        "docs/snippets/cancellation.cpp deadline", "docs/snippets/cancellation.cpp token",
        "docs/snippets/cancellation.cpp whole", "docs/snippets/errors.cpp compare", "docs/snippets/errors.cpp look",
        "docs/snippets/errors.cpp throwing", "docs/snippets/first.cpp program",
        "docs/snippets/resolving.cpp connect", "docs/snippets/resolving.cpp options",
        "docs/snippets/resolving.cpp report", "docs/snippets/sockets.cpp nonblocking",
        "docs/snippets/sockets.cpp udp", "docs/snippets/udp.cpp ask", "docs/snippets/udp.cpp batch",
        "docs/snippets/udp.cpp errors", "docs/snippets/udp.cpp group", "docs/snippets/udp.cpp local",
        "docs/snippets/tls.cpp connect", "docs/snippets/tls.cpp ends", "docs/snippets/tls.cpp over any stream",
        "docs/snippets/tls.cpp verify_peer",
        "docs/snippets/udp.cpp segmented", "examples/blocking_client.cpp ask",
        "examples/descriptor_passing.cpp receive",
    ],
    NO_PEER: [
        "docs/snippets/callbacks.cpp timers",
        "docs/snippets/threads.cpp group",
        "docs/snippets/threads.cpp run_blocking",
        "docs/snippets/threads.cpp run_on",
        "docs/snippets/threads.cpp spawn",
        "docs/snippets/threads.cpp strand",
        "docs/snippets/threads.cpp try_post",
        "docs/snippets/synchronisation.cpp watch",
        "docs/snippets/seeing_inside.cpp log",
        "docs/snippets/seeing_inside.cpp prometheus",
        "examples/cpu_offload.cpp offload",
        "docs/snippets/backends.cpp probe", "docs/snippets/backends.cpp selected",
        "docs/snippets/cancellation.cpp busy", "docs/snippets/cancellation.cpp plain",
        "docs/snippets/coroutines.cpp gcc12", "docs/snippets/coroutines.cpp gcc12 loop",
        "docs/snippets/coroutines.cpp group", "docs/snippets/coroutines.cpp lambda",
        "docs/snippets/coroutines.cpp limit", "docs/snippets/coroutines.cpp spawn",
        "docs/snippets/coroutines.cpp spawn_remote", "docs/snippets/coroutines.cpp yield",
        "docs/snippets/resolving.cpp category", "docs/snippets/resolving.cpp family",
        "docs/snippets/resolving.cpp resolve", "docs/snippets/seeing_inside.cpp callstack",
        "docs/snippets/seeing_inside.cpp dump", "docs/snippets/seeing_inside.cpp metrics",
        "docs/snippets/signals.cpp main", "docs/snippets/signals.cpp off", "docs/snippets/signals.cpp reload",
        "docs/snippets/synchronisation.cpp cross", "docs/snippets/synchronisation.cpp event",
        "docs/snippets/synchronisation.cpp kept", "docs/snippets/testing.cpp clock",
        "docs/snippets/testing.cpp duplex", "docs/snippets/testing.cpp faulty", "docs/snippets/testing.cpp main",
        "docs/snippets/testing.cpp protocol", "docs/snippets/testing.cpp stop",
        "examples/producer_consumer.cpp consume", "examples/producer_consumer.cpp produce",
    ],
    CALLBACKS: [
        "docs/snippets/callbacks.cpp buffer", "docs/snippets/callbacks.cpp idle",
        "docs/snippets/callbacks.cpp pool", "docs/snippets/callbacks.cpp task",
    ],
    BACKENDS: [
        "docs/snippets/http_fastcgi.cpp fastcgi", "docs/snippets/http_fastcgi.cpp front controller",
        "docs/snippets/http_fastcgi.cpp report", "docs/snippets/http_proxy.cpp handler",
        "docs/snippets/http_proxy.cpp router", "docs/snippets/http_proxy.cpp trusted",
    ],
    WHOLE: [
        "docs/snippets/http.cpp compression", "docs/snippets/http.cpp exceptions",
        "docs/snippets/http.cpp options", "docs/snippets/http.cpp proxy",
        "docs/snippets/http.cpp server", "docs/snippets/http.cpp statistics", "docs/snippets/http.cpp tls",
        "docs/snippets/http.cpp websocket goodbye", "docs/snippets/http.cpp websocket options",
        "docs/snippets/tls.cpp names", "docs/snippets/tls.cpp server",
        "docs/snippets/servers.cpp exceptions",
        "docs/snippets/servers.cpp local_server",
        "docs/snippets/servers.cpp proxy",
        "docs/snippets/backends.cpp run", "docs/snippets/backends.cpp small",
        "docs/snippets/seeing_inside.cpp signal", "docs/snippets/seeing_inside.cpp watchdog",
        "docs/snippets/streams.cpp shutdown", "docs/snippets/writing.cpp droppable",
        "docs/snippets/writing.cpp enqueue", "examples/backend_switch.cpp create",
    ],
}


def problems():
    taught = set()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs" / "usage").glob("*.md"))]:
        taught |= {" ".join(found) for found in SNIPPET.findall(page.read_text(encoding="utf-8"))}
    exempt = [each for some in EXEMPT.values() for each in some]
    known = {each.name.partition("/")[0] for each in
             targets.examples() + targets.secure_examples() + targets.idioms() + targets.http_examples() +
             targets.http_idioms()}
    for each in sorted(taught - SERVED.keys() - set(exempt)):
        yield f"{each}: on a page, but not under the crowd"
    for each in sorted((SERVED.keys() | set(exempt)) - taught):
        yield f"{each}: not on any page"
    for region, served in SERVED.items():
        for each in served:
            if each not in known:
                yield f"{region}: no such target: {each}"
    for each in sorted(known - {each for served in SERVED.values() for each in served}):
        if each.startswith("page:"):
            yield f"{each}: an idiom that is on no page"


def main():
    found = list(problems())
    print("\n".join([*found, f"{len(SERVED)} pieces of code under the crowd, {len(found)} problems"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
