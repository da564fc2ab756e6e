#!/usr/bin/env python3
"""Web servers of the suite: writes a configuration, becomes the server, and prints the port once it listens.

    python3 benchmarks/web_servers.py nginx --place DIR --file 612
    python3 benchmarks/web_servers.py httpd --place DIR --program build/perf/programs/httpd/simplenet-httpd
    python3 benchmarks/web_servers.py apache --place DIR --show

All of them serve the files of DIR/www, a fixed answer at /hello (not Apache, which has none), *.php with --php, and
/proxied/ from another server with --upstream. --show prints the configuration instead. Debian, Ubuntu: nginx-light,
apache2-bin.
"""

import argparse
import os
import shutil
import socket
import sys
import time

# --- nginx --------------------------------------------------------------------------------------------

# One process, and what nginx has for speed.
NGINX = """
daemon off;
master_process off;
worker_processes 1;
pid {place}/pid;
error_log stderr crit;
worker_rlimit_nofile 40000;
events {{ worker_connections 20000; }}
http {{
    {access_log}
    sendfile on;
    tcp_nopush on;
    open_file_cache max=100 inactive=1h;
    open_file_cache_valid 1h;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    {temporary}
    {upstreams}
    server {{
        listen 127.0.0.1:{port}{tls} backlog=4096;
        root {place}/www;
        index file;
        {routes}
    }}
}}
"""
# What differs from Debian's file, and costs or saves processor time.
NGINX_TUNED = ("tcp_nopush on;", "open_file_cache max=100 inactive=1h;", "open_file_cache_valid 1h;")

# What Debian 12 installs as /etc/nginx/nginx.conf and sites-enabled/default, with paths of its own.
NGINX_DEBIAN = """
daemon off;
user www-data;
worker_processes auto;
pid {place}/pid;
error_log {place}/error.log;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
    access_log {place}/access.log;
    gzip on;
    {temporary}
    {upstreams}
    server {{
        listen 127.0.0.1:{port}{tls} default_server;
        root {place}/www;
        index index.html index.htm index.nginx-debian.html;
        server_name _;
        location / {{ try_files $uri $uri/ =404; }}
        {routes}
    }}
}}
"""


def nginx_program():
    """The path of nginx, or None; Debian keeps it outside a user's PATH."""
    return find("nginx")


def nginx_text(given):
    place = given.place
    upstreams, routes = [], ['location = /hello { default_type text/plain; return 200 "Hello, world!\\n"; }']
    debian = given.kind == "nginx_debian"
    # As distributions show it: a connection for each request.
    if given.php:
        passes = f"unix:{given.php}"
        kept = ""
        if not debian and given.php_keep:
            upstreams.append(f"upstream php {{ server {passes}; keepalive {given.php_keep}; }}")
            passes, kept = "php", "fastcgi_keep_conn on; "
        routes.append(
            f"location ~ \\.php$ {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME "
            f"$document_root$fastcgi_script_name; {kept}fastcgi_pass {passes}; }}"
        )
    if given.upstream:
        passes = f"127.0.0.1:{given.upstream}"
        kept = ""
        if not debian:
            upstreams.append(f"upstream other {{ server {passes}; keepalive 128; keepalive_requests 1000000000; }}")
            passes, kept = "other", 'proxy_http_version 1.1; proxy_set_header Connection ""; '
        forwarded = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; "
        routes.append(f"location /proxied/ {{ {kept}{forwarded}proxy_pass http://{passes}; }}")
    tls = ""
    if given.tls:
        tls = " ssl"
        routes.append(f"ssl_certificate {given.tls[0]}; ssl_certificate_key {given.tls[1]};")
    text = (NGINX_DEBIAN if debian else NGINX).format(
        place=place,
        port=given.port,
        tls=tls,
        access_log="access_log off;" if given.log == "off" else f"access_log {place}/access.log combined buffer=64k flush=1s;",
        temporary=" ".join(
            f"{name}_temp_path {place}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        ),
        upstreams="\n    ".join(upstreams),
        routes="\n        ".join(routes),
    )
    for line in NGINX_TUNED if given.kind == "nginx_defaults" else ():
        text = text.replace(line, "")
    return text


def nginx_command(given):
    return [nginx_program(), "-c", write(given.place, "nginx.conf", nginx_text(given)), "-e", "stderr", "-p", given.place]


# --- Apache -------------------------------------------------------------------------------------------

# The modules and values of Debian 12, with mpm_event and its own numbers. But connections may have any number of requests
# (Debian: 100), because `ab` and `wrk` count it as a failure that one is closed; and no process ends because its threads
# have nothing to do (Debian: above 75 of them), because the time of one that has ended is not counted.
APACHE = """
ServerRoot {place}
ServerName localhost
PidFile {place}/apache.pid
ErrorLog {place}/error.log
LogLevel warn
{modules}
User www-data
Group www-data
Timeout 300
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 5
HostnameLookups Off
StartServers 2
MinSpareThreads 25
MaxSpareThreads 150
ThreadLimit 64
ThreadsPerChild 25
MaxRequestWorkers 150
MaxConnectionsPerChild 0
TypesConfig /etc/mime.types
LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
{access_log}
Listen 127.0.0.1:{port}
<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all denied
</Directory>
<Directory {place}/www>
    Options Indexes FollowSymLinks
    AllowOverride None
    Require all granted
</Directory>
DocumentRoot {place}/www
{routes}
"""
APACHE_MODULES = (
    "access_compat alias auth_basic authn_core authn_file authz_core authz_host authz_user autoindex deflate dir env filter "
    "mime mpm_event negotiation reqtimeout setenvif status"
)
APACHE_PLACE = "/usr/lib/apache2/modules"


def apache_text(given):
    modules, routes = APACHE_MODULES.split(), []
    if given.php or given.upstream:
        modules.append("proxy")
    if given.php:
        modules.append("proxy_fcgi")
        routes.append(f'<FilesMatch "\\.php$">\n    SetHandler "proxy:unix:{given.php}|fcgi://localhost/"\n</FilesMatch>')
    if given.upstream:
        modules.append("proxy_http")
        routes.append(f"ProxyPass /proxied/ http://127.0.0.1:{given.upstream}/proxied/")
    if given.tls:
        modules += ["socache_shmcb", "ssl"]
        routes.append(f"SSLEngine on\nSSLCertificateFile {given.tls[0]}\nSSLCertificateKeyFile {given.tls[1]}")
    return APACHE.format(
        place=given.place,
        port=given.port,
        modules="\n".join(f"LoadModule {name}_module {APACHE_PLACE}/mod_{name}.so" for name in modules),
        access_log="" if given.log == "off" else f"CustomLog {given.place}/access.log combined",
        routes="\n".join(routes),
    )


def apache_command(given):
    return [find("apache2"), "-f", write(given.place, "apache.conf", apache_text(given)), "-DFOREGROUND"]


# --- ours ---------------------------------------------------------------------------------------------

HTTPD = """
workers = {workers}

[[listen]]
address = "127.0.0.1:{port}"
{tls}

[[site]]
root = "{place}/www"

  [[site.route]]
  match = "/hello"
  answer = {{ type = "text/plain", body = "Hello, world!\\n" }}
{routes}

[limits]
keep_alive = "1h"

[log]
access = "{access}"
format = "{format}"
"""


def httpd_text(given):
    routes = []
    if given.php:
        routes.append(f'match = "*.php"\n  fastcgi = "unix:{given.php}"\n  keep_connections = {given.php_keep}')
    if given.upstream:
        routes.append(f'match = "/proxied/*"\n  proxy = "127.0.0.1:{given.upstream}"\n  keep_connections = 128')
    return HTTPD.format(
        place=given.place,
        port=given.port,
        workers=given.workers,
        tls=f'tls = {{ certificate = "{given.tls[0]}", key = "{given.tls[1]}" }}' if given.tls else "",
        routes="".join(f"\n  [[site.route]]\n  {each}\n" for each in routes),
        access="off" if given.log == "off" else f"{given.place}/access.log",
        format="combined" if given.log == "off" else given.log,
    )


def httpd_command(given):
    file = write(given.place, "httpd.toml", httpd_text(given))
    return [given.program, "--config", file, "--backend", given.backend]


# --- system calls alone -------------------------------------------------------------------------------


def bare_text(_):
    return "None: each read is answered with the same bytes."


def bare_command(given):
    """bare_web_server.cpp, bare_uring_web_server.cpp, or the server of tls_bare_server.cpp."""
    www = os.path.join(given.place, "www")
    # As much as the others answer: the file, "Hello, world!", or that from PHP.
    body = 14 if given.php else os.path.getsize(os.path.join(www, "file")) or 14
    command = [given.program, "--port", str(given.port), "--body", str(body)]
    if given.tls:
        command += ["--mode", "answer", "--certificate", given.tls[0], "--key", given.tls[1]]
    if given.php:
        command += ["--php", given.php, "--script", os.path.join(www, "hello.php")]
    if given.upstream:
        command += ["--upstream", str(given.upstream)]
    return command


# --- all ----------------------------------------------------------------------------------------------

TEXTS = {
    "nginx": nginx_text,
    "nginx_defaults": nginx_text,
    "nginx_debian": nginx_text,
    "apache": apache_text,
    "httpd": httpd_text,
    "bare": bare_text,
}
COMMANDS = {
    "nginx": nginx_command,
    "nginx_defaults": nginx_command,
    "nginx_debian": nginx_command,
    "apache": apache_command,
    "httpd": httpd_command,
    "bare": bare_command,
}


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin")


def write(place, name, text):
    path = os.path.join(place, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def make_file(place, size):
    """The file that is served as /file; what else is in `place` is not served."""
    os.chmod(place, 0o755)  # so that a server that changes its user may read it
    os.makedirs(os.path.join(place, "www"), exist_ok=True)
    with open(os.path.join(place, "www", "file"), "wb") as file:
        file.write(bytes(size))


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(COMMANDS))
    parser.add_argument("--place", required=True, help="a folder: what is in its www is served")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--file", type=int, help="makes www/file of that many bytes")
    parser.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"))
    parser.add_argument("--php", metavar="SOCKET", help="of PHP-FPM")
    parser.add_argument("--php-keep", type=int, default=32, help="connections to PHP-FPM that nginx and ours keep")
    parser.add_argument("--upstream", type=int, metavar="PORT", help="the server behind /proxied/")
    parser.add_argument("--log", default="off", choices=["off", "combined", "json"])
    parser.add_argument("--program", default="simplenet-httpd", help="ours, or the bare one")
    parser.add_argument("--backend", default="epoll", help="of ours")
    parser.add_argument("--workers", type=int, default=1, help="of ours")
    parser.add_argument("--show", action="store_true", help="prints the configuration, and ends")
    return parser.parse_args(given)


def main():
    given = arguments()
    given.place = os.path.abspath(given.place)
    if given.show:
        print(TEXTS[given.kind](given).strip())
        return
    if given.file is not None:
        make_file(given.place, given.file)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", given.port))
        given.port = probe.getsockname()[1]
    command = COMMANDS[given.kind](given)
    if not command[0]:
        sys.exit(f"{given.kind} is not installed")
    child = os.fork()
    if child != 0:
        # The port is printed by a grandchild, which is no child of the server and not measured with it. The server must not
        # print there, too.
        os.waitpid(child, 0)
        os.dup2(2, 1)
        os.execv(command[0], command)
    if os.fork() != 0:
        os._exit(0)
    for _ in range(2000):
        try:
            socket.create_connection(("127.0.0.1", given.port)).close()
            print(given.port, flush=True)
            break
        except ConnectionRefusedError:
            time.sleep(0.005)


if __name__ == "__main__":
    main()
