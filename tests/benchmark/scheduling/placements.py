# SPDX-License-Identifier: Apache-2.0
"""Placement's API over HTTP, in processes of its own, each telling its CPU time."""

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from pathlib import Path
from wsgiref import simple_server

import requests
from placement import wsgi

from nova_perfvm import constants as const
from nova_perfvm.placement.schemes import units
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.files import database_options
from tests.benchmark.scheduling.databases import placement_database
from tests.benchmark.scheduling.flavors import policy
from tests.benchmark.scheduling.pools import HIGH_PER_HOST

CPU_HEADER = "X-Process-Cpu-Ms"
TOKEN = "admin"
_HEADERS = {"X-Auth-Token": TOKEN, "OpenStack-API-Version": "placement 1.36"}
_GRACE_S = 5


class Placement:
    """One Placement: some processes at one port.

    :param workers: how many processes accept requests
    :param options: of [placement] that differ from their defaults
    """

    def __init__(self, databases, scheme, *, workers=1, options=None):
        self._databases, self._scheme = databases, scheme
        self._workers, self._options = workers, options or {}
        self._children = []

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        etc = self._configure()
        context = multiprocessing.get_context("fork")
        self._children = [
            context.Process(target=_serve, args=(self._socket, etc), daemon=True)
            for _ in range(self._workers)
        ]
        try:
            # The first makes the tables, which others would at the same time.
            self._children[0].start()
            self._prepare()
            for child in self._children[1:]:
                child.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._socket.close()
        end = time.monotonic() + _GRACE_S
        started = [child for child in self._children if child.pid]
        for child in started:
            child.terminate()
        for child in started:
            child.join(max(0, end - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join()

    @property
    def url(self):
        """Its address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def ask(self, method, path, **options):
        """Return the JSON of an answer.

        :raises SandboxError: when it refuses
        """
        answer = requests.request(
            method, self.url + path, headers=_HEADERS, timeout=300, **options
        )
        if answer.status_code >= 300:
            raise SandboxError(f"Placement answers {method} {path}: {answer.text}")
        return answer.json() if answer.content else None

    def _configure(self):
        # Several Placements may share a database.
        self._databases.layout.etc.mkdir(exist_ok=True)
        etc = Path(
            tempfile.mkdtemp(prefix="placement-", dir=self._databases.layout.etc)
        )
        lines = [f"{name} = {value}" for name, value in self._options.items()]
        url = self._databases.url(placement_database(self._scheme))
        text = "\n".join(
            (
                *("[DEFAULT]", f"log_file = {self._databases.log}"),
                *("use_stderr = false", "default_log_levels = placement=WARN"),
                *("[api]", "auth_strategy = noauth2"),
                *("[placement]", "allocation_conflict_retry_count = 1", *lines),
                *("[placement_database]", database_options(url)),
                "sync_on_startup = true",
            )
        )
        (etc / "placement.conf").write_text(text + "\n", encoding="utf-8")
        return str(etc)

    def _prepare(self):
        """Let it know the names that are the project's own."""
        self.ask("GET", "/resource_providers?name=nobody")
        for name in (const.RC_SLOT, const.RC_UNIT):
            self.ask("PUT", f"/resource_classes/{name}")
        children = map(units.child_trait, units.SUFFIXES[:HIGH_PER_HOST])
        elastic = units.UNITS.enrolled_trait(policy("units"))
        for name in (const.TRAIT_HIGH_PERFORMANCE, elastic, *children):
            self.ask("PUT", f"/traits/{name}")


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
