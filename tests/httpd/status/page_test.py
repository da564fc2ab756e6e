"""The status page in headless Chromium, and its metrics with the parser of Python's prometheus_client.

    page_test.py --examples DIRECTORY [--pictures DIRECTORY]

With --pictures it also takes pictures for people to look at."""

import os
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import http_support  # noqa: E402
import support  # noqa: E402
from http_support import curl  # noqa: E402
from websocket_support import CHROMIUM, Browser  # noqa: E402

# Debian's package, also for a Python that is not Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

PICTURES = None


class Sample(support.Server):
    """Its address is that of the status server; `web` is the other one."""

    def __init__(self, *options):
        super().__init__("simplenet_httpd_status_sample", *options, choose_backend=False)
        host, _, port = self.line().rpartition(":")
        self.web = type("Address", (), {"host": host, "port": int(port)})

    def get(self, path):
        return curl(self.web, path)


class Load:
    """Requests on some connections, until the end of `with`."""

    def __init__(self, server, path, connections=4, pause=0.002):
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(server.web, path, pause)) for _ in range(connections)]

    def _ask(self, to, path, pause):
        import http.client  # pylint: disable=import-outside-toplevel
        connection = http.client.HTTPConnection(to.host, to.port, timeout=support.WAIT)
        while not self._over.wait(pause):
            try:
                connection.request("GET", path)
                connection.getresponse().read()
            except OSError:
                connection.close()
        connection.close()

    def __enter__(self):
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for each in self._threads:
            each.join()


class metrics_test(http_support.TestCase):
    @unittest.skipUnless(text_string_to_metric_families, "python3-prometheus-client is missing")
    def test_the_parser_of_prometheus_client_understands_the_metrics(self):
        with Sample() as server:
            server.get("/")
            server.get("/fail")
            text = curl(server, "/metrics").body.decode()
        families = {each.name: each for each in text_string_to_metric_families(text)}

        requests = {each.labels["status"]: each.value for each in families["simplenet_httpd_requests"].samples}
        self.assertEqual((requests["2xx"], requests["5xx"], requests["none"]), (1, 1, 0))
        self.assertEqual(families["simplenet_httpd_requests"].type, "counter")
        self.assertEqual(families["simplenet_httpd_request_duration_seconds"].type, "histogram")


@unittest.skipUnless(CHROMIUM, "chromium is missing")
class page_test(http_support.TestCase):
    def open(self, browser, server, width=1100, height=1000, dark=False, phone=False):
        tab = browser.tab("about:blank")
        tab.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                    deviceScaleFactor=2 if phone else 1, mobile=phone)
        tab.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        tab.command("Page.navigate", url=f"http://{server.host}:{server.port}/")
        tab.wait_for("document.getElementById('state')?.textContent === 'Live'")
        return tab

    def test_shows_the_requests_of_a_second(self):
        with Sample() as server, Browser() as browser, Load(server, "/"):
            tab = self.open(browser, server)
            tab.wait_for("parseFloat(document.getElementById('rate').textContent.replace(',', '')) > 10")
            tab.wait_for("/µs|ms/.test(document.getElementById('p50').textContent)")
            tab.wait_for("document.querySelectorAll('#loops li').length === 2")
            tab.wait_for("document.querySelector('#rate-chart .stroke').getAttribute('d').includes('L')")
            tab.wait_for("document.querySelector('#sites th').textContent === 'example.org'")

    def test_shows_errors_backends_and_reloads(self):
        with Sample() as server, Browser() as browser:
            tab = self.open(browser, server)
            self.assertNotIn("left out", tab.evaluate("document.getElementById('notes').textContent"))

            server.get("/backend/down")
            server.get("/reload/failed")
            tab.wait_for("document.getElementById('backends').textContent.includes('left out for 8 seconds')")
            tab.wait_for("document.getElementById('notes').textContent.includes('worker-2.sock')")
            tab.wait_for("document.getElementById('notes').textContent.includes('latest reload failed')")

            server.get("/backend/up")
            server.get("/reload/ok")
            tab.wait_for("!document.getElementById('notes').textContent.includes('worker-2.sock')")
            tab.wait_for("!document.getElementById('notes').textContent.includes('reload failed')")

    def test_says_so_without_an_answer_and_goes_on_after_a_restart(self):
        port = support.free_port()
        with Browser() as browser:
            with Sample("--port", str(port)) as server:
                server.get("/")
                tab = self.open(browser, server)
            tab.wait_for("document.getElementById('state').textContent.startsWith('No answer')")
            tab.wait_for("document.title.startsWith('No answer')")
            with Sample("--port", str(port)), Load(server, "/"):
                tab.wait_for("document.getElementById('state').textContent === 'Live'")
                tab.wait_for("document.title === 'simplenet-httpd'")
                # The counters began again: that is no negative rate.
                tab.wait_for("samples.at(-1).rate !== null")
                self.assertGreaterEqual(tab.evaluate("samples.at(-1).rate"), 0)

    def test_nothing_is_blocked_by_the_policy_and_no_error_is_thrown(self):
        with Sample() as server, Browser() as browser:
            tab = browser.tab("about:blank")
            tab.command("Page.enable")
            tab.command("Page.addScriptToEvaluateOnNewDocument", source="""
                window.problems = [];
                addEventListener('error', event => problems.push(String(event.message)));
                addEventListener('unhandledrejection', event => problems.push(String(event.reason)));
                document.addEventListener('securitypolicyviolation', event => problems.push(event.violatedDirective));
            """)
            tab.command("Page.navigate", url=f"http://{server.host}:{server.port}/")
            tab.wait_for("document.getElementById('state')?.textContent === 'Live'")
            tab.wait_for("samples.length > 1")

            self.assertEqual(tab.evaluate("window.problems"), [])

    def test_fits_on_a_phone(self):
        with Sample() as server, Browser() as browser:
            tab = self.open(browser, server, width=360, height=740, phone=True)

            self.assertLessEqual(tab.evaluate("document.documentElement.scrollWidth"), 360)

    def test_pictures(self):
        if not PICTURES:
            self.skipTest("not asked for")
        os.makedirs(PICTURES, exist_ok=True)
        with Sample() as server, Browser() as browser:
            tabs = {"light": self.open(browser, server, height=1250),
                    "dark": self.open(browser, server, height=1250, dark=True),
                    "phone": self.open(browser, server, width=390, height=2400, phone=True)}
            with Load(server, "/", 6, 0.001), Load(server, "/slow", 8, 0.01):
                time.sleep(12)
                server.get("/backend/down")
                with Load(server, "/fail", 1, 0.05):
                    time.sleep(8)
                server.get("/reload/failed")
                time.sleep(3)
                for name, tab in tabs.items():
                    tab.screenshot(os.path.join(PICTURES, f"{name}.png"))
            server.get("/reload/ok")
            server.get("/backend/up")
            time.sleep(2)
            tabs["light"].screenshot(os.path.join(PICTURES, "calm.png"))


if __name__ == "__main__":
    if "--pictures" in sys.argv:
        place = sys.argv.index("--pictures")
        PICTURES = sys.argv[place + 1]
        del sys.argv[place:place + 2]
    support.main()
