# SPDX-License-Identifier: Apache-2.0
"""Placement's API over HTTP, in processes of its own, each telling its CPU time."""

import contextlib
import http.client
import json
import logging
import multiprocessing
import os
import signal
import socket
import time
from wsgiref import simple_server

from placement import wsgi

from tests.processes import waiting
from tests.processes.errors import SandboxError

CPU_HEADER = "X-Process-Cpu-Ms"
TOKEN = "admin"
_HEADERS = {
    "X-Auth-Token": TOKEN,
    "OpenStack-API-Version": "placement 1.36",
    "Content-Type": "application/json",
}
_GRACE_S = 5
_PATIENCE_S = 300


class Placement:
    """One Placement: some processes at one port.

    :param database: the MariaDB that it uses
    :param name: of its database there
    :param workers: how many processes accept requests
    :param options: of [placement] that differ from their defaults
    """

    def __init__(self, database, name="placement", *, workers=1, options=None):
        self._database, self._workers = database, workers
        self._etc = database.placement_conf(name, options or {})
        self._children = []

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        context = multiprocessing.get_context("fork")
        try:
            for _ in range(self._workers):
                child = context.Process(
                    target=_serve, args=(self._socket, self._etc), daemon=True
                )
                child.start()
                self._children.append(child)
                if len(self._children) == 1:
                    # It makes the tables, which others would at the same time.
                    self.ask("GET", "/resource_providers?name=nobody")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._socket.close()
        end = time.monotonic() + _GRACE_S
        for child in self._children:
            child.terminate()
        for child in self._children:
            child.join(max(0, end - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join()

    @property
    def url(self):
        """Its address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def connect(self):
        """Return a connection, which one of the processes accepts and waits at."""
        port = self._socket.getsockname()[1]
        found = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
        found.connect()
        return found

    def request(self, method, path, body=None, connection=None):
        """Return (status, text) of an answer.

        :raises SandboxError: when there is none
        """
        connection = connection or self.connect()
        try:
            connection.request(method, path, json.dumps(body or {}), _HEADERS)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            log = waiting.tail(self._database.log)
            raise SandboxError(f"a Placement process has ended:\n{log}") from None
        finally:
            connection.close()

    def measure(self, path):
        """Return (CPU milliseconds, JSON) of an answer to GET."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path, headers=_HEADERS)
            answer = connection.getresponse()
            found = json.load(answer)
        return float(answer.headers[CPU_HEADER]), found

    def ask(self, method, path, body=None):
        """Return the JSON of an answer.

        :raises SandboxError: when it refuses
        """
        status, text = self.request(method, path, body)
        if status >= 300:
            raise SandboxError(f"Placement answers {method} {path}: {status}: {text}")
        return json.loads(text) if text else None


class _Server(simple_server.WSGIServer):
    def server_bind(self):
        self.server_name, self.server_port = self.socket.getsockname()
        self.setup_environ()


class _Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


def _serve(listening, etc):
    """Be a Placement process until a signal ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = etc
    application = wsgi.init_application()
    logging.getLogger("placement.requestlog").disabled = True

    def measured(environ, start_response):
        started = time.process_time()

        def answer(status, headers, exc_info=None):
            spent = (time.process_time() - started) * 1000
            return start_response(
                status, [*headers, (CPU_HEADER, f"{spent:.3f}")], exc_info
            )

        return application(environ, answer)

    server = _Server(("", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.server_bind()
    server.set_app(measured)
    server.serve_forever()
