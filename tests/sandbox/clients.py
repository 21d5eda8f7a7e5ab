# SPDX-License-Identifier: Apache-2.0
"""Clients of a cloud, each a process of its own, that ask for much at once."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import NamedTuple

from keystoneauth1 import exceptions, session
from keystoneauth1.identity import v3

# Where RabbitMQ is down, nova-api answers when it is back.
ANSWER_S = 600

_NOVA = {"service_type": "compute", "interface": "public"}


class Call(NamedTuple):
    """One request to Nova; the method is GET, POST, PUT or DELETE."""

    method: str
    path: str
    body: dict | None = None


class Answer(NamedTuple):
    """What came of a call.

    :ivar status: of HTTP; 0 where there was no answer
    """

    status: int
    text: str


def ask(cloud, calls, number):
    """Make calls from so many clients, all at the same moment.

    :param cloud: an entry of clouds.yaml
    :returns: an answer for each call, in their order
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(number)
    shares = [calls[n::number] for n in range(number)]
    with ProcessPoolExecutor(
        number, mp_context=context, initializer=_know, initargs=(barrier,)
    ) as pool:
        jobs = [pool.submit(_client, cloud, share) for share in shares]
        answers = [iter(job.result()) for job in jobs]
    return [next(answers[n % number]) for n in range(len(calls))]


def _know(barrier):
    global _BARRIER  # noqa: PLW0603 - a pool's processes are told things like this
    _BARRIER = barrier


def _client(cloud, calls):
    """Be one client: a token, and a thread for each call."""
    auth = v3.Password(**cloud["auth"])
    own = session.Session(auth=auth, timeout=ANSWER_S)
    own.get_endpoint(**_NOVA)
    _BARRIER.wait()
    with ThreadPoolExecutor(max(1, len(calls))) as pool:
        return list(pool.map(lambda call: _answer(own, call), calls))


def _answer(own, call):
    try:
        response = own.request(
            call.path,
            call.method,
            json=call.body,
            endpoint_filter=_NOVA,
            microversion="2.86",
            raise_exc=False,
        )
    except exceptions.ClientException as exc:
        return Answer(0, str(exc))
    return Answer(response.status_code, response.text)
