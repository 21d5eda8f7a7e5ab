# SPDX-License-Identifier: Apache-2.0
"""PerfVMFilter: the rules."""

from collections.abc import Iterator

from nova_perfvm import constants as const
from nova_perfvm.diagnose.nova_filters.case import FilterCase
from nova_perfvm.facts import Reason, RequestFacts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import UNKNOWN
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_host, decide, resolve_class
from nova_perfvm.rules.host.cpu_sets import NO_NUMA


def rules(case: FilterCase) -> Iterator[Reason]:
    """Yield why the rules refuse a request on a host, or why they cannot be applied."""
    yield from rules_against(case.policy, case.request.facts, case.view, case.wrong)


def rules_against(
    policy: Policy,
    request: RequestFacts,
    view: HostView,
    wrong: tuple[Reason, ...] | None = None,
) -> tuple[Reason, ...]:
    """Return why the rules refuse a request on a host, or why they cannot be applied.

    :param wrong: the result of ``check_request``, if the caller judges many hosts
    """
    if wrong is None:
        reasons = decide(policy, request, view.facts).reasons
    else:
        reasons = wrong or check_host(policy, request, view.facts)
    if view.compute.cells_source != UNKNOWN:
        return reasons
    if reasons and reasons[0].code == NO_NUMA.code:
        return (Reason(const.CELLS_UNKNOWN, {}),)
    if not reasons and resolve_class(policy, request) is None:
        return (Reason(const.CELLS_UNKNOWN, {}),)
    return reasons
