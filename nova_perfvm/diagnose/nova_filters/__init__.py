# SPDX-License-Identifier: Apache-2.0
"""Filters of nova-scheduler, as far as a snapshot lets them be judged without Nova.

One table: the name of a filter's class, and a function that yields why it refuses a
host, with figures.  Other people's filters, and those of Nova that are not in it, are
named by whoever asks for a verdict.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from nova_perfvm.diagnose import devices, groups
from nova_perfvm.diagnose.nova_filters import aggregates, hosts, numa
from nova_perfvm.diagnose.nova_filters.case import FilterCase
from nova_perfvm.diagnose.nova_filters.perfvm import rules
from nova_perfvm.facts import Reason
from nova_perfvm.facts.snapshot.groups import FILTERS as FILTERS_OF_GROUPS

__all__ = ["FILTERS", "IN_CLAIMS", "FilterCase", "Judge"]

Judge = Callable[[FilterCase], Iterator[Reason]]


def _group(policy: str) -> Judge:
    def judge(case: FilterCase) -> Iterator[Reason]:
        group = case.request.group
        if group is not None and group.policy == policy:
            yield from groups.reasons(group, case.request.server, case.view)

    return judge


FILTERS: Final[Mapping[str, Judge]] = {
    "AggregateImagePropertiesIsolation": aggregates.image_properties,
    "AggregateInstanceExtraSpecsFilter": aggregates.extra_specs,
    "AggregateIoOpsFilter": aggregates.io_ops,
    "AggregateMultiTenancyIsolation": aggregates.tenants,
    "AggregateNumInstancesFilter": aggregates.num_instances,
    "AggregateTypeAffinityFilter": aggregates.flavor_names,
    "AllHostsFilter": lambda _: iter(()),
    "ComputeCapabilitiesFilter": hosts.capabilities,
    "ComputeFilter": hosts.service,
    "DifferentHostFilter": hosts.different_host,
    "ImagePropertiesFilter": hosts.image_properties,
    "IoOpsFilter": hosts.io_ops,
    "IsolatedHostsFilter": hosts.isolated_hosts,
    "NUMATopologyFilter": numa.topology,
    "NumInstancesFilter": hosts.num_instances,
    "PciPassthroughFilter": lambda case: devices.lacking(case.request, case.view),
    "PerfVMFilter": rules,
    "PerfVMNUMATopologyFilter": numa.topology,
    "SameHostFilter": hosts.same_host,
    **{name: _group(policy) for policy, name in FILTERS_OF_GROUPS.items()},
}
# What nova-compute looks at when it claims, whichever filters are enabled.
IN_CLAIMS: Final = (
    *FILTERS_OF_GROUPS.values(),
    "NUMATopologyFilter",
    "PciPassthroughFilter",
)
