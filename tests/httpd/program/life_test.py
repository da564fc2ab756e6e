"""How the program starts, reloads and ends."""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import pwd
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import httpd_support as support
from httpd_support import get


class start_test(support.TestCase):
    def test_every_loop_waits_by_the_backend_of_the_configuration(self):
        self.configure()
        with self.start() as server:
            place = f"/proc/{server.pid}/fd"
            kinds = {os.readlink(f"{place}/{each}") for each in os.listdir(place)}
        other = "anon_inode:[io_uring]" if support.backend() == "epoll" else "anon_inode:[eventpoll]"
        self.assertNotIn(other, kinds)

    def test_a_folder_is_served_without_a_configuration(self):
        with self.start("--root", self.path("www"), "--listen", "127.0.0.1:0", "--workers", "1") as server:
            self.assertEqual(get(server.port())[:2], (200, "front page"))
            self.assertEqual(server.printed, [f"http://127.0.0.1:{server.port()}/\n"])

    def test_a_wrong_configuration_is_told_with_its_place(self):
        self.configure(site='rot = "www"')
        for arguments in ((), ("--check",)):
            ended = self.run_to_end("--config", self.path("httpd.toml"), *arguments)
            self.assertEqual(ended.returncode, 2)
            self.assertRegex(ended.stderr, r"httpd\.toml:9:1: .*`rot`.*`root`")

    def test_an_address_that_is_taken_ends_the_start(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.configure(listen=f'address = "127.0.0.1:{port}"')
            ended = self.run_to_end("--config", self.path("httpd.toml"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"cannot listen at 127.0.0.1:{port}: Address already in use", ended.stderr)

    def test_inherited_sockets_are_used(self):
        with listening() as passed:
            port = passed.getsockname()[1]
            self.configure(listen=f'address = "127.0.0.1:{port}"')
            with self.start(listener=passed) as server:
                self.assertEqual(get(port)[1], "front page")
                self.assertEqual(server.port(), port)

    def test_what_is_printed_goes_into_no_log(self):
        self.configure(site='[log]\nerror = "error.log"\naccess = "-"')
        command = f"exec {support.program()} --config {self.path('httpd.toml')} <&- >&- 2>&-"
        self.write("error.log", "")
        server = subprocess.Popen(["sh", "-c", command])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        support.wait_until(lambda: "ready" in self.read("error.log"), "the start")
        at = re.search(r"http://127.0.0.1:(\d+)/", self.read("error.log"))
        self.assertEqual(get(int(at[1]), "/seen")[0], 404)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(support.LIMIT), 0)
        self.assertNotIn("/seen", self.read("error.log"))

    def test_the_service_manager_is_told(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(self.path("notify"))
            manager.settimeout(support.LIMIT)
            self.configure()
            server = self.start(environment={"NOTIFY_SOCKET": self.path("notify")})
            self.assertEqual(manager.recv(100), b"READY=1")
            server.send(signal.SIGHUP)
            self.assertRegex(manager.recv(100), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
            self.assertEqual(manager.recv(100), b"READY=1")
            self.assertEqual(server.end(), 0)
            self.assertEqual(manager.recv(100), b"STOPPING=1")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_only_root_can_use_is_told(self):
        os.mkdir(self.path("spool"), 0o700)
        self.configure(more='user = "nobody"', site='[[site.route]]\nmatch = "/x"\nproxy = "127.0.0.1:9"')
        with self.start(environment={"TMPDIR": self.path("spool")}) as server:
            server.wait_for("(TMPDIR)")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user_serves_what_root_has_opened(self):
        self.write("log", "")
        os.chown(self.path("log"), pwd.getpwnam("nobody").pw_uid, -1)
        self.configure(more='user = "nobody"', site="[log]\naccess = \"log\"")
        with self.start() as server:
            status = support.read(f"/proc/{server.pid}/status")
            nobody = pwd.getpwnam("nobody").pw_uid
            self.assertRegex(status, rf"Uid:\t{nobody}\t{nobody}\t{nobody}\t")
            self.assertRegex(status, r"CapEff:\t0000000000000400\n")  # CAP_NET_BIND_SERVICE
            self.assertRegex(status, r"NoNewPrivs:\t1\n")
            self.assertEqual(get(server.port())[1], "front page")
            server.reload()
            self.assertEqual(get(server.port())[1], "front page")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_the_user_could_not_read_again_ends_the_start(self):
        os.chmod(self.path("www"), 0o700)
        self.configure(more='user = "nobody"')
        ended = self.run_to_end("--config", self.path("httpd.toml"))
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("Permission denied", ended.stderr)
        os.chmod(self.path("www"), 0o755)


class reload_test(support.TestCase):
    def test_a_connection_goes_on_with_the_new_configuration(self):
        self.configure(site='headers = { "X-A" = "one" }')
        with self.start() as server:
            client = http.client.HTTPConnection("127.0.0.1", server.port(), timeout=support.LIMIT)
            client.connect()
            connected = client.sock
            for value in ("one", "two", "three"):
                self.configure(site=f'headers = {{ "X-A" = "{value}" }}')
                server.reload()
                client.request("GET", "/")
                answer = client.getresponse()
                self.assertEqual(answer.headers["X-A"], value)
                self.assertEqual(answer.read(), b"front page")
                self.assertIs(client.sock, connected)
            client.close()

    def test_a_wrong_configuration_leaves_the_old_one(self):
        self.configure(site='headers = { "X-A" = "one" }')
        with self.start() as server:
            for wrong in ('rot = "x"', 'root = "none"', '[[site.route]]\nmatch = "/x"\nauth = { file = "none" }'):
                self.write("httpd.toml", self.read("httpd.toml").split("[[site]]")[0] + "[[site]]\n" + wrong)
                server.reload(" error not reloaded")
                self.assertEqual(get(server.port())[2]["X-A"], "one")

    def test_a_wrong_configuration_leaves_the_logs(self):
        self.configure(site='[log]\naccess = "access.log"')
        with self.start() as server, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            at = f'[[listen]]\naddress = "127.0.0.1:{taken.getsockname()[1]}"'
            self.configure(listen='address = "127.0.0.1:0"\n' + at, site='[log]\naccess = "other.log"')
            server.reload(" error not reloaded")
            get(server.port(), "/seen")
            support.wait_until(lambda: "/seen" in self.read("access.log"), "the line")
            self.assertEqual(self.read("other.log"), "")

    def test_a_socket_of_the_service_manager_is_used_again(self):
        with listening() as passed:
            port = passed.getsockname()[1]
            self.configure(listen=f'address = "127.0.0.1:{port}"')
            with self.start(listener=passed) as server:
                self.configure()
                server.reload()
                self.configure(listen=f'address = "127.0.0.1:{port}"')
                server.reload()
                self.assertEqual(get(port)[1], "front page")

    def test_what_needs_a_restart_is_told_each_time(self):
        told = "change only when the program is restarted"
        self.configure()
        with self.start() as server:
            first = self.read("httpd.toml")
            self.write("httpd.toml", first.replace("workers = 2", "workers = 1"))
            for times in (1, 2):
                server.reload()
                support.wait_until(lambda: sum(told in each for each in server.lines) == times, "the warning", server.lines)
            self.write("httpd.toml", first)
            server.reload()
        self.assertEqual(sum(told in each for each in server.lines), 2)

    def test_listeners_come_and_go(self):
        ports = [support.free_port() for _ in range(3)]
        listen = [f'address = "127.0.0.1:{port}"' for port in ports]
        self.configure(listen=listen[0] + "\n[[listen]]\n" + listen[1])
        with self.start() as server:
            self.assertEqual([get(port)[0] for port in ports[:2]], [200, 200])
            self.configure(listen=listen[1] + "\n[[listen]]\n" + listen[2])
            server.reload()
            self.assertEqual([get(port)[0] for port in ports[1:]], [200, 200])
            self.assertEqual([each[2] for each in server.find_addresses()], ports)
            self.assertTrue(server.said(f" info no longer serving at=http://127.0.0.1:{ports[0]}/"))
            self.assertFalse(server.said(f" info no longer serving at=http://127.0.0.1:{ports[1]}/"))
            support.wait_until(lambda: is_refused(ports[0]), "the end of the first listener")

    def test_an_address_that_cannot_be_had_leaves_everything(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = support.free_port()
            self.configure(listen=f'address = "127.0.0.1:{port}"', site='headers = { "X-A" = "one" }')
            with self.start() as server:
                self.configure(listen=f'address = "127.0.0.1:{port}"\n[[listen]]\n'
                                      f'address = "127.0.0.1:{taken.getsockname()[1]}"')
                server.reload(" error not reloaded")
                self.assertEqual(get(port)[2]["X-A"], "one")

    def test_a_failed_reload_keeps_a_socket_of_the_service_manager(self):
        with socket.socket() as passed, socket.socket() as taken:
            for each in (passed, taken):
                each.bind(("127.0.0.1", 0))
                each.listen()
            port = passed.getsockname()[1]
            others = f'[[listen]]\naddress = "127.0.0.1:{taken.getsockname()[1]}"'
            self.configure()
            with self.start(listener=passed) as server:
                self.configure(listen=f'address = "127.0.0.1:{port}"\n{others}')
                server.reload(" error not reloaded")
                self.configure(listen=f'address = "127.0.0.1:{port}"')
                server.reload()
                self.assertEqual(get(port)[1], "front page")

    def test_a_failed_reload_accepts_no_connection(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = support.free_port()
            self.configure(listen=f'address = "127.0.0.1:{port}"')
            with self.start() as server:
                self.configure(listen=f'address = "127.0.0.1:{port}"\nproxy_protocol = "required"\n'
                                      'proxy_from = ["127.0.0.1"]\n[[listen]]\n'
                                      f'address = "127.0.0.1:{taken.getsockname()[1]}"')
                with asking(port) as asked:
                    for _ in range(20):
                        before = asked.answered
                        server.reload(" error not reloaded")
                        support.wait_until(lambda before=before: asked.answered > before, "an answer")
                self.assertEqual(asked.failed, [])

    def test_an_address_moves_between_a_listener_and_the_status(self):
        ports = [support.free_port() for _ in range(2)]
        listen = [f'address = "127.0.0.1:{port}"' for port in ports]
        self.configure(listen=listen[0] + "\n[[listen]]\n" + listen[1])
        with self.start() as server:
            for _ in range(2):
                self.configure(listen=listen[0], site="[status]\n" + listen[1])
                server.reload()
                support.wait_until(lambda: get(ports[1], "/health")[1] == "ok\n", "the status")
                self.configure(listen=listen[1], site="[status]\n" + listen[0])
                server.reload()
                support.wait_until(lambda: get(ports[0], "/health")[1] == "ok\n", "the status")
                self.assertEqual(get(ports[1])[1], "front page")

    def test_names_of_the_status_are_replaced(self):
        port = support.free_port()
        status = f'[status]\naddress = "127.0.0.1:{port}"'
        self.configure(site=status)
        with self.start() as server:
            self.assertEqual(get(port, "/metrics", headers={"Host": "figures.example"})[0], 421)
            self.configure(site=status + '\nhosts = ["figures.example"]')
            server.reload()
            self.assertEqual(get(port, "/metrics", headers={"Host": "figures.example"})[0], 200)

    def test_a_certificate_of_two_listeners_is_told_once(self):
        if not support.certificates():
            self.skipTest("without TLS")
        port = support.free_port()
        secure = f'address = "127.0.0.1:0"\n{support.tls_line()}'
        self.configure(listen=f"{secure}\n[[listen]]\n{secure}", site=f'[status]\naddress = "127.0.0.1:{port}"')
        with self.start():
            told = json.loads(get(port, "/status.json")[1])
        self.assertEqual(len(told["certificates"]), 1)

    def test_listeners_with_chosen_ports_go_on(self):
        self.configure(listen='address = "127.0.0.1:0"\n[[listen]]\naddress = "127.0.0.1:0"')
        with self.start() as server:
            server.reload()
            self.assertEqual([get(server.port(each))[0] for each in range(2)], [200, 200])

    def test_a_listener_becomes_one_of_the_proxy_protocol(self):
        port = support.free_port()
        self.configure(listen=f'address = "127.0.0.1:{port}"')
        with self.start() as server:
            self.assertEqual(get(port)[0], 200)
            self.configure(listen=f'address = "127.0.0.1:{port}"\nproxy_protocol = "required"\n'
                                  'proxy_from = ["127.0.0.1"]', site='allow = ["192.0.2.1"]')
            server.reload()
            with socket.create_connection(("127.0.0.1", port), support.LIMIT) as client:
                client.sendall(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"
                               b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                self.assertIn(b"200 OK", client.makefile("rb").read())

    def test_a_listener_redirects_to_https_from_a_reload_on(self):
        if not support.certificates():
            self.skipTest("needs TLS")
        plain, secure = support.free_port(), support.free_port()
        self.configure(listen=f'address = "127.0.0.1:{plain}"')
        with self.start() as server:
            self.assertEqual(get(plain)[0], 200)
            self.configure(listen=f'address = "127.0.0.1:{plain}"\nredirect_https = true\n'
                                  f'[[listen]]\naddress = "127.0.0.1:{secure}"\n{support.tls_line()}')
            server.reload()
            status, _, headers = get(plain, "/index.html?a=b", headers={"Host": "127.0.0.1"})
            self.assertEqual((status, headers["Location"]), (308, f"https://127.0.0.1:{secure}/index.html?a=b"))
            answer = get(secure, "/index.html?a=b", tls=support.trusting_context())
            self.assertEqual(answer[:2], (200, "front page"))

    def test_connections_end_when_the_issuers_of_their_clients_change(self):
        if not support.certificates():
            self.skipTest("needs TLS")
        port = support.free_port()
        self.write("issuers.pem", support.certificate("root.pem"))
        tls = support.tls_line().replace(" }", ', client_ca = "issuers.pem" }')
        self.configure(listen=f'address = "127.0.0.1:{port}"\n{tls}')
        context = support.trusting_context()
        context.load_cert_chain(*(os.path.join(support.certificates(), f"client.{kind}") for kind in ("pem", "key")))
        with self.start() as server:
            client = http.client.HTTPSConnection("127.0.0.1", port, timeout=support.LIMIT, context=context)
            with contextlib.closing(client):
                for _ in range(2):
                    client.request("GET", "/")
                    self.assertEqual(client.getresponse().read(), b"front page")
                    server.reload()
                self.write("issuers.pem", support.certificate("first.pem"))
                server.reload()
                self.assertEqual(client.sock.recv(1), b"")

    def test_reloads_under_load_lose_no_request(self):
        self.configure()
        with self.start() as server:
            port = server.port()
            stop = threading.Event()
            failed = []
            served = [0] * 8

            def ask(index):
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=support.LIMIT)
                try:
                    while not stop.is_set():
                        client.request("GET", "/")
                        answer = client.getresponse()
                        if (answer.status, answer.read()) != (200, b"front page"):
                            failed.append(answer.status)
                        served[index] += 1
                except (OSError, http.client.HTTPException) as error:
                    failed.append(error)
                finally:
                    client.close()
            clients = [threading.Thread(target=ask, args=(each,)) for each in range(len(served))]
            for each in clients:
                each.start()
            for _ in range(20):
                server.reload()
            stop.set()
            for each in clients:
                each.join(support.LIMIT)
            self.assertEqual(failed, [])
            self.assertGreater(min(served), 0)


class end_test(support.TestCase):
    def test_a_request_that_has_begun_is_answered(self):
        self.configure(site='body = "1KiB"\n[[site.route]]\nmatch = "/x"\nanswer = { body = "done" }')
        server = self.start()
        with socket.create_connection(("127.0.0.1", server.port()), support.LIMIT) as client:
            client.sendall(b"GET /x HTTP/1.1\r\nHost: h\r\n")
            server.send(signal.SIGTERM)
            server.wait_for(" info ending")
            client.sendall(b"\r\n")
            answer = client.makefile("rb").read()
        self.assertIn(b"200 OK", answer)
        self.assertIn(b"Connection: close", answer)
        self.assertTrue(answer.endswith(b"done"))
        self.assertEqual(server.end(), 0)

    def test_a_connection_gets_a_last_request(self):
        self.configure(more="[limits]\nlast_request = \"20s\"")
        server = self.start()
        client = http.client.HTTPConnection("127.0.0.1", server.port(), timeout=support.LIMIT)
        client.request("GET", "/")
        client.getresponse().read()
        server.send(signal.SIGTERM)
        server.wait_for(" info ending")
        client.request("GET", "/")
        answer = client.getresponse()
        self.assertEqual((answer.status, answer.headers["Connection"]), (200, "close"))
        answer.read()
        client.close()
        self.assertEqual(server.end(), 0)

    def test_the_grace_is_the_longest_wait_and_a_second_signal_ends_it(self):
        self.configure(more='[limits]\nheaders_within = "0s"\nlast_request = "0s"')
        self.write("httpd.toml", self.read("httpd.toml").replace('grace = "5s"', 'grace = "1h"'))
        server = self.start()
        with socket.create_connection(("127.0.0.1", server.port()), support.LIMIT) as client:
            client.sendall(b"GET / HTTP/1.1\r\n")
            support.wait_until(lambda: server.process.poll() is None, "the start")
            time.sleep(0.2)  # the head has to arrive; too early makes the test easier, not wrong
            server.send(signal.SIGTERM)
            server.wait_for(" info ending")
            server.send(signal.SIGTERM)
            self.assertEqual(server.process.wait(support.LIMIT), 0)

    def test_log_files_are_opened_again(self):
        self.configure(site='[log]\naccess = "access.log"')
        with self.start() as server:
            get(server.port(), "/first")
            support.wait_until(lambda: "/first" in self.read("access.log"), "the line")
            os.rename(self.path("access.log"), self.path("access.log.1"))
            server.send(signal.SIGUSR1)
            support.wait_until(lambda: os.path.exists(self.path("access.log")), "the new file")
            get(server.port(), "/second")
            support.wait_until(lambda: "/second" in self.read("access.log"), "the line")
            self.assertNotIn("/first", self.read("access.log"))

    def test_tasks_are_dumped(self):
        self.configure()
        with self.start() as server:
            server.send(signal.SIGUSR2)
            server.wait_for("loop 1:")


class unable_handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass


class unable_server(http.server.ThreadingHTTPServer):
    """Answers with 501."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), unable_handler)

    def handle_error(self, *_):
        pass  # its client has gone


class shortage_test(support.TestCase):
    CLIENTS = 300
    # Whoever sends it cannot be spared: a byte of its body is awaited. Then nobody is at the backend, and the answer is
    # a file that nobody has asked for.
    BUSY = b"POST /busy HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"
    BUSY_ROUTE = 'error_pages = { 502 = "/other" }\n[[site.route]]\nmatch = "/busy"\nproxy = "127.0.0.1:1"'

    def start_with_few_descriptors(self):
        self.configure(listen='address = "127.0.0.1:0"\n[[listen]]\naddress = "127.0.0.1:0"', site=self.BUSY_ROUTE)
        return self.start(descriptors=200)

    def come_at_once(self, server, clients, text=b""):
        """A crowd, each of which says `text`; the server goes on when all have come."""
        server.send(signal.SIGSTOP)
        for _ in range(self.CLIENTS):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", server.port()), support.LIMIT))
            client.sendall(text)
        server.send(signal.SIGCONT)

    def test_clients_that_wait_keep_nobody_out(self):
        self.write("www/other", "another file")
        with self.start_with_few_descriptors() as server, contextlib.ExitStack() as clients:
            for each in range(self.CLIENTS):
                client = http.client.HTTPConnection("127.0.0.1", server.port(), timeout=support.LIMIT)
                clients.callback(client.close)
                client.request("GET", "/")
                self.assertEqual(client.getresponse().read(), b"front page", each)
            for port in (server.port(0), server.port(1)):
                self.assertEqual(get(port, "/other")[:2], (200, "another file"))
            self.assertFalse(server.said("new connections wait"), server.lines)

    def test_silent_clients_keep_nobody_out(self):
        with self.start_with_few_descriptors() as server, contextlib.ExitStack() as clients:
            self.come_at_once(server, clients)
            for port in (server.port(0), server.port(1)):
                self.assertEqual(get(port)[:2], (200, "front page"))

    def test_half_heads_keep_nobody_out(self):
        with self.start_with_few_descriptors() as server, contextlib.ExitStack() as clients:
            self.come_at_once(server, clients, b"GET / HTTP/1.1\r\n")
            for port in (server.port(0), server.port(1)):
                self.assertEqual(get(port)[:2], (200, "front page"))

    def test_clients_that_are_busy_leave_descriptors_for_files(self):
        self.write("www/other", "another file")
        with self.start_with_few_descriptors() as server, contextlib.ExitStack() as clients:
            client = clients.enter_context(socket.create_connection(("127.0.0.1", server.port()), support.LIMIT))
            client.sendall(self.BUSY)
            self.come_at_once(server, clients, self.BUSY)
            server.wait_for("error new connections wait")
            before = server.descriptors()
            time.sleep(2.5)  # a listener that looked again took another one each second
            self.assertEqual(server.descriptors(), before)
            client.sendall(b"x")
            self.assertIn(b"another file", client.makefile("rb").read())

    def test_busy_clients_of_other_loops_leave_descriptors(self):
        """The loop that accepts saw only its own, one of sixteen, and took the last ones for the others."""
        descriptors, scarce = 640, 640 - 640 // 16 - 16  # one for each worker
        with listening() as passed:
            at = passed.getsockname()[1]
            self.configure(listen=f'address = "127.0.0.1:{at}"', site=self.BUSY_ROUTE)
            text = self.read("httpd.toml").replace("workers = 2", "workers = 16")
            self.assertIn("workers = 16", text)
            self.write("httpd.toml", text)
            with self.start(listener=passed, descriptors=descriptors) as server, contextlib.ExitStack() as clients:
                for _ in range(scarce - server.descriptors() + 60):  # fewer than fit into the backlog are left there
                    client = clients.enter_context(socket.create_connection(("127.0.0.1", at), support.LIMIT))
                    client.sendall(self.BUSY)
                server.wait_for("new connections wait")
                self.assertLessEqual(server.descriptors(), scarce + 1)

    def test_busy_clients_of_many_workers_leave_descriptors(self):
        """Each worker took one more before it looked: together they took the last ones."""
        self.write("www/other", "another file")
        self.configure(site=self.BUSY_ROUTE)
        text = self.read("httpd.toml").replace("workers = 2", "workers = 16")
        self.assertIn("workers = 16", text)
        self.write("httpd.toml", text)
        descriptors = 256
        with self.start(descriptors=descriptors) as server, contextlib.ExitStack() as clients:
            client = clients.enter_context(socket.create_connection(("127.0.0.1", server.port()), support.LIMIT))
            client.sendall(self.BUSY)
            self.come_at_once(server, clients, self.BUSY)
            server.wait_for("error new connections wait")
            self.assertLessEqual(server.descriptors(), descriptors - descriptors // 16)
            client.sendall(b"x")
            self.assertIn(b"another file", client.makefile("rb").read())

    def test_a_shortage_ends_with_its_crowd(self):
        """Listeners waited for room that nothing could report any more."""
        backend = unable_server()
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        self.addCleanup(backend.server_close)
        self.addCleanup(backend.shutdown)
        self.configure(site=f'[[site.route]]\nmatch = "/app"\nproxy = "127.0.0.1:{backend.server_port}"')
        with self.start(descriptors=200) as server:
            for _ in range(3):
                with contextlib.ExitStack() as clients:
                    for _ in range(190):
                        client = clients.enter_context(socket.create_connection(("127.0.0.1", server.port())))
                        client.sendall(b"GET /app HTTP/1.1\r\nHost: h\r\n\r\n")
                    server.wait_for("Too many open files")  # some get 503
                # Until the server has seen all of them leave, there may be no descriptor for a file.
                for _ in range(10):
                    self.assertIn(get(server.port())[0], (200, 503))
                support.wait_until(lambda: get(server.port())[0] == 200, "the end of the shortage")

    def test_a_limit_that_leaves_no_room_is_told_at_the_start(self):
        self.configure()
        with self.start(descriptors=40) as server:
            self.assertTrue(server.said("warning few file descriptors are left for connections limit=40"))
        self.configure(listen='address = "127.0.0.1:0"' + '\n[[listen]]\naddress = "127.0.0.1:0"' * 3)
        text = self.read("httpd.toml").replace("workers = 2", "workers = 16")
        self.assertIn("workers = 16", text)
        self.write("httpd.toml", text)
        with self.start(descriptors=200) as server:
            self.assertTrue(server.said("warning few file descriptors are left for connections limit=200"))
        self.configure()
        with self.start() as server:
            self.assertFalse(server.said("few file descriptors"))

    def test_a_shortage_is_told(self):
        with self.start_with_few_descriptors() as server:
            with contextlib.ExitStack() as clients:
                for _ in range(self.CLIENTS):
                    client = clients.enter_context(
                        socket.create_connection(("127.0.0.1", server.port()), support.LIMIT))
                    client.sendall(self.BUSY)
                server.wait_for('error new connections wait error="Too many open files"')
            self.assertEqual(get(server.port())[:2], (200, "front page"))


class crowd_test(support.TestCase):
    def come_and_leave(self, server, stay):
        with contextlib.ExitStack() as crowd:
            for _ in range(500):
                client = crowd.enter_context(socket.create_connection(("127.0.0.1", server.port()), support.LIMIT))
                client.sendall(b"GET / HTTP/1.1\r\nX: " + bytes(20000).replace(b"\0", b"x"))
            time.sleep(stay)
            self.assertFalse(server.said("a crowd has left"), server.lines)

    def test_memory_goes_back_when_a_crowd_has_left(self):
        self.configure()
        with self.start() as server:
            # The program looks every 5 s, and sees only a crowd that is there when it looks.
            for stay in (5.5, 10, 20):
                self.come_and_leave(server, stay)
                end = time.monotonic() + 15
                while not server.said("info a crowd has left") and time.monotonic() < end:
                    time.sleep(0.01)
                if server.said("info a crowd has left"):
                    break
            server.wait_for("info a crowd has left")
            told = next(line for line in list(server.lines) if "a crowd has left" in line)
        before, after = (int(re.search(rf"{key}=(\d+)", told)[1]) for key in ("resident_before", "resident"))
        # AddressSanitizer has a malloc of its own, which has nothing to give.
        if b"__asan_init" not in pathlib.Path(support.program()).read_bytes():
            self.assertLess(after, before - 4 * 2**20, told)


class asking:
    """Asks for / again and again, on a new connection each time, until its block ends."""

    def __init__(self, port):
        self.failed = []
        self.answered = 0
        self._port = port
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(4)]

    def _ask(self):
        while not self._stop.is_set():
            try:
                answer = get(self._port)[:2]
            except (OSError, http.client.HTTPException) as error:
                answer = error
            if answer != (200, "front page"):
                self.failed.append(answer)
            self.answered += 1

    def __enter__(self):
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for each in self._threads:
            each.join(support.LIMIT)


def listening():
    """A socket that listens at a port of the kernel's choice."""
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen()
    return made


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), support.LIMIT).close()
        return False
    except ConnectionRefusedError:
        return True


if __name__ == "__main__":
    support.main()
