# SPDX-License-Identifier: Apache-2.0
"""A proxy is set, and gets none of the requests to the sandbox."""

import contextlib
import http.server
import threading
from pathlib import Path

import fixtures
import testtools
from openstack import exceptions as sdk_exceptions

from tests.processes import ports, waiting
from tests.processes import settings as kept_settings
from tests.processes.sandbox import Sandbox

OURS = "127.0.0.1,localhost"


class ExemptionsTest(testtools.TestCase):
    def test_what_is_exempted_stays_so(self):
        for lower, upper, expected in (
            (None, None, OURS),
            ("", "", OURS),
            ("a.example, .b", None, f"a.example, .b,{OURS}"),
            (None, "a.example", f"a.example,{OURS}"),
            ("a", "b", f"a,b,{OURS}"),
        ):
            environ = {"no_proxy": lower, "NO_PROXY": upper, "http_proxy": "x"}
            given = {k: v for k, v in environ.items() if v is not None}
            found = ports.without_proxies(given)
            self.assertEqual({"no_proxy": expected, "NO_PROXY": expected}, found)


class ProxyTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.proxy, self.asked_proxy = self.serve(503)
        self.api, self.asked_api = self.serve(404)
        for name in ("http_proxy", "all_proxy"):
            self.useFixture(fixtures.EnvironmentVariable(name, self.proxy))
        directory = Path(self.useFixture(fixtures.TempDir()).path) / "state"
        self.sandbox = Sandbox(directory)
        self.sandbox.layout.logs.mkdir(parents=True)

    def serve(self, status):
        """Answer every request with a status; return the address and the paths."""
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_args):
                pass

        server = http.server.ThreadingHTTPServer((ports.ADDRESS, 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://{ports.ADDRESS}:{server.server_port}", asked

    def test_nobody_asks_it(self):
        self.assertTrue(waiting.answers(f"{self.api}/"))
        self.assertEqual((["/"], []), (self.asked_api, self.asked_proxy))
        port = int(self.api.rpartition(":")[2])
        settings = kept_settings.SandboxSettings(
            "dedicated:2x20", "0", dict.fromkeys(ports.NAMES, port), "secret"
        )
        kept_settings.save(settings, self.sandbox.layout.settings)

        with contextlib.suppress(sdk_exceptions.SDKException):
            self.sandbox.connect().authorize()

        self.assertIn("/v3/auth/tokens", self.asked_api)
        self.assertEqual([], self.asked_proxy)
        for found in (self.sandbox.processes.environment(), self.sandbox.exports()):
            self.assertEqual((OURS, OURS), (found["no_proxy"], found["NO_PROXY"]))
        self.assertEqual(self.proxy, self.sandbox.processes.environment()["http_proxy"])
