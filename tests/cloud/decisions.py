# SPDX-License-Identifier: Apache-2.0
"""What PerfVMFilter decided on each host, request by request."""

from __future__ import annotations

import collections
import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import fixtures

from nova_perfvm import rules
from nova_perfvm.facts import Decision
from nova_perfvm.scheduler.filters import PerfVMFilter
from nova_perfvm.scheduler.residents import Residents

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class FilterVerdict:
    """The filter's verdict on one host for one request.

    :ivar decision: the facts judged once more, with every reason
    """

    host: str
    decision: Decision

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the reason codes, the first one being the one logged."""
        return tuple(reason.code for reason in self.decision.reasons)

    @property
    def words(self) -> tuple[str, ...]:
        """Return each reason as the filter words it."""
        return tuple(rules.describe(reason) for reason in self.decision.reasons)


class Decisions(fixtures.Fixture):
    """Listen to the PerfVMFilter of the scheduler in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._verdicts = collections.defaultdict(list)

    def _setUp(self) -> None:  # noqa: N802
        original = PerfVMFilter.filter_all

        def filter_all(this: Any, hosts: Iterable[Any], spec_obj: Any) -> list[Any]:
            hosts = list(hosts)
            verdicts = [
                FilterVerdict(host.host, _decide(this, host, spec_obj))
                for host in hosts
            ]
            with self._lock:
                self._verdicts[spec_obj.instance_uuid] += verdicts
            return original(this, hosts, spec_obj)

        self.useFixture(
            fixtures.MockPatchObject(PerfVMFilter, "filter_all", filter_all)
        )

    def of(self, server_id: str) -> list[FilterVerdict]:
        """Return the Verdicts on a server's requests, oldest first."""
        with self._lock:
            return list(self._verdicts[server_id])


def _decide(judge: Any, host: Any, spec_obj: Any) -> Decision:
    """Return what the filter decides on one host alone, with all its reasons."""
    request = judge._request(spec_obj)
    reasons = rules.check_request(judge.policy, request)
    if not reasons:
        _, reasons = judge._judge(request, host, Residents([host]))
    return Decision(not reasons, reasons)
