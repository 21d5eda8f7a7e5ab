# SPDX-License-Identifier: Apache-2.0
"""Models of nova-scheduler's filters, as far as a snapshot has the data.

``FILTERS`` maps the class name of a filter to a function that yields why the filter
refuses a host, with figures.  For a filter that is not in the table, such as an
out-of-tree one, callers report the filter's name.
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
# Filters whose conditions nova-compute's claim checks again, whether enabled or not.
IN_CLAIMS: Final = (
    *FILTERS_OF_GROUPS.values(),
    "NUMATopologyFilter",
    "PciPassthroughFilter",
)
