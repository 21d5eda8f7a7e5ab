# SPDX-License-Identifier: Apache-2.0
"""The names that nova-scheduler's list of enabled filters needs, and their order."""

from collections.abc import Iterator, Sequence
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.findings import Finding
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy

OPTION: Final = "[filter_scheduler]enabled_filters"
FILTER: Final = "PerfVMFilter"
NOVAS_NUMA_FILTER: Final = "NUMATopologyFilter"
# Replaces NUMATopologyFilter: the same verdicts, for a fraction of the cost.
NUMA_FILTER: Final = "PerfVMNUMATopologyFilter"
# Default of [filter_scheduler]enabled_filters in Nova 34.
NOVA_FILTERS: Final = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)


def judge(enabled: Sequence[str], policy: Policy | None) -> list[Finding]:
    """Return the findings about nova-scheduler's enabled filters and their order.

    PerfVMFilter costs far less than a filter of NUMA topologies, so exactly one of the
    latter should follow it.

    :param enabled: names of filters in nova-scheduler's order
    :param policy: None if the policy cannot be read
    """
    steers = policy is not None and scheme_of(policy).steers
    remedy = (
        f"list {FILTER}, then {NUMA_FILTER}, and no {NOVAS_NUMA_FILTER}, in "
        f"{OPTION}, and restart nova-scheduler"
    )
    return [
        Finding.of(code, "nova.conf", f"{OPTION} {words}", remedy)
        for code, words in _faults(enabled, steers=steers)
    ]


def _faults(enabled: Sequence[str], *, steers: bool) -> Iterator[tuple[str, str]]:
    numa = [name for name in enabled if name in {NUMA_FILTER, NOVAS_NUMA_FILTER}]
    if FILTER not in enabled:
        words = f"lacks {FILTER}: only Placement enforces the policy"
        yield codes.FILTER_MISSING, words
    if not numa:
        words = f"lacks {NUMA_FILTER}: pinned VMs are sent to hosts that refuse them"
        yield codes.FILTER_MISSING, words
    elif FILTER not in enabled[: enabled.index(numa[0])] and FILTER in enabled:
        words = f"lists {numa[0]} before {FILTER}, which costs far less"
        yield codes.FILTER_ORDER, words
    if enabled.count(FILTER) > 1:
        yield codes.JUDGED_TWICE, f"lists {FILTER} twice: every host is judged twice"
    if steers and NOVAS_NUMA_FILTER in numa:
        words = (
            f"has {NOVAS_NUMA_FILTER}, so nova-compute puts VMs on other NUMA nodes "
            f"than Placement allocated: {NUMA_FILTER} makes both agree"
        )
        yield codes.NOT_STEERED, words
    elif len(numa) > 1:
        words = f"lists {' and '.join(numa)}: every host is judged twice"
        yield codes.JUDGED_TWICE, words
    elif NOVAS_NUMA_FILTER in numa:
        words = f"has {NOVAS_NUMA_FILTER}; {NUMA_FILTER} gives the same for less"
        yield codes.CHEAPER_FILTER, words
