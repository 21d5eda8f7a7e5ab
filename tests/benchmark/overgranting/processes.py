# SPDX-License-Identifier: Apache-2.0
"""Processes of Placement, and what they claim at once."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import time
import uuid

import webob
from placement import wsgi

from nova_perfvm.sandbox.processes import waiting
from nova_perfvm.sandbox.processes.errors import SandboxError

CAPACITY, CLAIM = 40, 20
# Claims of a consumer's generation, as Nova makes them.
HEADERS = {"OpenStack-API-Version": "placement 1.28", "X-Auth-Token": "admin"}
DONE, REFUSED = 204, 409
# A claim may wait for a lock when its process is asked to end.
GRACE_S = 5
_LONGEST = 400


@dataclasses.dataclass
class Tally:
    """What the rounds of a row came to.

    ``used`` has the PCPU in use after each round; ``statuses`` those of all
    claims, and ``failure`` what Placement said to one it neither did nor refused.
    """

    used: list = dataclasses.field(default_factory=list)
    statuses: list = dataclasses.field(default_factory=list)
    failure: str = ""

    @property
    def over(self):
        """In how many rounds more was granted than there is."""
        return sum(used > CAPACITY for used in self.used)


def serve(pipe, etc):
    """Be a Placement process: answer requests until there is None.

    Each is (method, path, body), each answer (status, text).
    """
    # The one that is asked to stop ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = str(etc)
    application = wsgi.init_application()
    while (asked := pipe.recv()) is not None:
        method, path, body = asked
        request = webob.Request.blank(path, method=method, headers=HEADERS)
        if body is not None:
            request.content_type = "application/json"
            request.body = json.dumps(body).encode()
        response = request.get_response(application)
        pipe.send((response.status_int, response.text))


class Placement:
    """Several processes of Placement on one database."""

    def __init__(self, number, etc, log):
        """Know how many there are to be, and where placement.conf is.

        :param log: what is shown the end of when a process ends
        """
        self.number, self.etc, self.log = number, etc, log
        self.pipes, self.children = [], []

    def __enter__(self):
        # A fork has imported Placement already; nothing is connected yet.
        context = multiprocessing.get_context("fork")
        try:
            for _ in range(self.number):
                ours, theirs = context.Pipe()
                child = context.Process(target=serve, args=(theirs, self.etc))
                child.start()
                theirs.close()
                self.pipes.append(ours)
                self.children.append(child)
                if len(self.pipes) == 1:
                    # It makes the tables, which others would at the same time.
                    self.ask("GET", "/")
            self.ask_all([("GET", "/resource_providers", None)] * self.number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
            pipe.close()
        end = time.monotonic() + GRACE_S
        for child in self.children:
            child.join(max(0, end - time.monotonic()))
            if child.is_alive():
                child.kill()
                child.join()

    def ask_all(self, requests):
        """Ask a process each, all at once, and return the answers."""
        pairs = list(zip(self.pipes, requests, strict=False))
        try:
            for pipe, request in pairs:
                pipe.send(request)
            return [pipe.recv() for pipe, _ in pairs]
        except (EOFError, OSError):
            raise SandboxError(
                f"a Placement process has ended:\n{waiting.tail(self.log)}"
            ) from None

    def ask(self, method, path, body=None):
        """Ask the first process.

        :raises SandboxError: when it is not done
        """
        [(status, text)] = self.ask_all([(method, path, body)])
        if status >= 300:
            raise SandboxError(f"Placement answers {method} {path}: {status}: {text}")
        return json.loads(text) if text else None


def play(placement, tally):
    """Let all processes claim at once; take down what became of it."""
    provider, consumers = str(uuid.uuid4()), []
    path = f"/resource_providers/{provider}"
    body = {"uuid": provider, "name": provider}
    placement.ask("POST", "/resource_providers", body)
    inventory = {
        "resource_provider_generation": 0,
        "inventories": {"PCPU": {"total": CAPACITY}},
    }
    placement.ask("PUT", f"{path}/inventories", inventory)
    consumers = [str(uuid.uuid4()) for _ in placement.pipes]
    claim = {
        "allocations": {provider: {"resources": {"PCPU": CLAIM}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
    }
    answers = placement.ask_all(
        [("PUT", f"/allocations/{consumer}", claim) for consumer in consumers]
    )
    tally.statuses += [status for status, _ in answers]
    for status, text in answers:
        if status not in {DONE, REFUSED}:
            tally.failure = f"{status}: {text[:_LONGEST]}"
    usages = placement.ask("GET", f"{path}/usages")
    tally.used.append(usages["usages"]["PCPU"])
    for (status, _), consumer in zip(answers, consumers, strict=True):
        if status == DONE:
            placement.ask("DELETE", f"/allocations/{consumer}")
    placement.ask("DELETE", path)
