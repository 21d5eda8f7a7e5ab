# SPDX-License-Identifier: Apache-2.0
"""Ask Placement for allocation candidates as nova-scheduler does, but notice failures.

nova-scheduler treats a query that fails as one without candidates.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from keystoneauth1 import exceptions as ksa_exceptions
from nova import context as nova_context
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report

from nova_perfvm.cloud.api import error_of
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.printable import first_line

_BAD_REQUEST: Final = 400


class NoCandidatesError(PerfVMError):
    """Placement did not answer the query for allocation candidates."""


class Candidates(NamedTuple):
    """Placement's answer to one query.

    :ivar summaries: Placement's provider summaries, by UUID
    :ivar fault: why Placement refuses the query itself, for example for a trait that it
        does not know; empty if it does not
    """

    requests: list[dict[str, Any]]
    summaries: Mapping[str, Any]
    fault: str = ""


class _Watched:
    """The ``get`` of Nova's client, which remembers its answer or error."""

    def __init__(self, get: Callable[..., Any]) -> None:
        self._get = get
        self.answer: Any = None
        self.error: ksa_exceptions.ClientException | None = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            self.answer = self._get(*args, **options)
        except ksa_exceptions.ClientException as exc:
            self.error = exc
            raise
        return self.answer


def candidates_of(
    context: nova_context.RequestContext, query: scheduler_utils.ResourceRequest
) -> Candidates:
    """Return Placement's candidates for a query of nova-scheduler.

    :raises NoCandidatesError: when Placement cannot be reached, or fails
    """
    try:
        # A copy, because Nova's client is shared.
        client = copy.copy(report.report_client_singleton())
        client.get = watched = _Watched(client.get)
        found = client.get_allocation_candidates(context, query)
    except ksa_exceptions.ClientException as exc:
        raise _unanswered(exc) from exc
    if found is None:
        # Nova's safe_connect() has caught the error.
        raise _unanswered(watched.error) from watched.error
    requests, summaries, _ = found
    if requests is not None:
        return Candidates(requests, summaries)
    words, _ = error_of(watched.answer)
    if watched.answer.status_code == _BAD_REQUEST:
        return Candidates([], {}, words)
    raise NoCandidatesError(
        f"Placement answers the query for hosts with {watched.answer.status_code} "
        f"({words}): see the log of Placement, then repeat the command"
    )


def _unanswered(exc: ksa_exceptions.ClientException | None) -> NoCandidatesError:
    why = f"{type(exc).__name__}: {first_line(exc)}" if exc else "no answer"
    return NoCandidatesError(
        f"Placement cannot be asked for hosts ({why}): check that it runs, and the "
        "endpoint and user in section [placement] of nova.conf, then repeat the command"
    )
