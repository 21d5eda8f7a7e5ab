# SPDX-License-Identifier: Apache-2.0
"""A service of OpenStack that answers at a URL in the test's own process."""

import http.server
import json
import threading

import fixtures


class Answering(http.server.BaseHTTPRequestHandler):
    """Takes JSON and answers with it."""

    def log_message(self, *_arguments):
        """Be quiet."""

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status, document, headers=()):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ServiceFixture(fixtures.Fixture):
    """A service at a URL.

    :cvar HANDLER: the class that answers
    """

    HANDLER = Answering

    def _setUp(self):  # noqa: N802
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.HANDLER)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}/"
