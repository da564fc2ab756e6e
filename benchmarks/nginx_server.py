#!/usr/bin/env python3
"""nginx as a server of the suite: one worker that serves a file, configured for speed.

Becomes nginx; a child prints the port as the first line as soon as nginx listens. `config()` is also used by measure_send_file.py.
Debian, Ubuntu: nginx-light.

    python3 benchmarks/nginx_server.py --file 612
"""

import argparse
import os
import shutil
import socket
import time

CONFIG = """
daemon off;
master_process off;
worker_processes 1;
pid {place}/pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=100 inactive=1h;
    open_file_cache_valid 1h;
    keepalive_requests 1000000000;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    server {{ listen 127.0.0.1:{port}; root {place}; index file; {hello} }}
}}
"""
HELLO = 'location = /hello { default_type text/plain; return 200 "Hello, world!\\n"; }'
# What differs from Debian's configuration, and costs or saves processor time.
TUNED = ("tcp_nopush on;", "open_file_cache max=100 inactive=1h;", "open_file_cache_valid 1h;")


def program():
    """The path of nginx, or None; Debian keeps it outside a user's PATH."""
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")


def command(place, port, defaults=False):
    """Writes the configuration for the folder `place`, whose `file` is served; /hello is a fixed answer."""
    config = os.path.join(place, "nginx.conf")
    text = CONFIG.format(place=place, port=port, hello=HELLO)
    for line in TUNED if defaults else ():
        text = text.replace(line, "")
    with open(config, "w") as file:
        file.write(text)
    return [program(), "-c", config, "-e", "stderr", "-p", place]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--place", required=True, help="an empty folder, for the file and the configuration")
    parser.add_argument("--file", type=int, help="bytes of a file that is made; default: it is there")
    parser.add_argument("--defaults", action="store_true", help="without what speeds up files")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    given = parser.parse_args()
    os.chmod(given.place, 0o755)  # so that a server that changes its user may read it
    if given.file is not None:
        with open(os.path.join(given.place, "file"), "wb") as file:
            file.write(bytes(given.file))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", given.port))
        port = probe.getsockname()[1]
    nginx = command(given.place, port, given.defaults)
    if os.fork() != 0:
        os.execv(nginx[0], nginx)
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            print(port, flush=True)
            break
        except ConnectionRefusedError:
            time.sleep(0.01)


if __name__ == "__main__":
    main()
