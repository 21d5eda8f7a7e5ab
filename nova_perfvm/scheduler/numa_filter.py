# SPDX-License-Identifier: Apache-2.0
"""Nova's NUMATopologyFilter, asked once for hosts that are alike."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from nova import objects
from nova.objects import base
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.host_manager import HostState
from nova.virt import hardware
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# What a field that is not set is told from, which may be None.
_UNSET = object()


class PerfVMNUMATopologyFilter(numa_topology_filter.NUMATopologyFilter):
    """Return the verdicts of Nova's NUMATopologyFilter at a fraction of its cost.

    Nova copies the whole request for each host, because what fits the topology
    onto a host writes into it.  Here the topology alone is copied, and hosts whose
    cells are in the same state are judged once per request: an idle rack has one
    verdict.  Hosts, limits and candidates are left as Nova's filter leaves them.

    A request for PCI devices goes to Nova's own code, host by host: there each
    candidate of Placement counts, and pools of devices differ.
    """

    def filter_all(
        self, filter_obj_list: Iterable[HostState], spec_obj: objects.RequestSpec
    ) -> Iterator[HostState]:
        """Yield the hosts onto whose cells the request's NUMA topology fits."""
        requests = spec_obj.pci_requests
        if requests and requests.requests:
            yield from super().filter_all(filter_obj_list, spec_obj)
            return
        known: dict[Hashable, _Verdicts] = {}
        for host_state in filter_obj_list:
            if self._alike_passes(host_state, spec_obj, known):
                yield host_state

    def _alike_passes(
        self,
        host_state: HostState,
        spec_obj: objects.RequestSpec,
        known: dict[Hashable, _Verdicts],
    ) -> bool:
        """Judge one host as Nova's ``host_passes`` does.

        :param known: what is known of states of cells; added to
        """
        wanted = spec_obj.numa_topology
        if not self._satisfies_cpu_policy(
            host_state, spec_obj.flavor.extra_specs, spec_obj.image.properties
        ):
            return False
        if not wanted:
            return True
        offered = host_state.numa_topology
        if not offered:
            _log_refusal(host_state, spec_obj, "it reports no NUMA topology")
            return False

        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=host_state.cpu_allocation_ratio,
            ram_allocation_ratio=host_state.ram_allocation_ratio,
        )
        if "network_metadata" in spec_obj and spec_obj.network_metadata:
            limits.network_metadata = spec_obj.network_metadata
        candidates = host_state.allocation_candidates
        state = (
            host_state.cpu_allocation_ratio,
            host_state.ram_allocation_ratio,
            _state(offered),
            # The cells with devices are tried last: see _Verdicts.
            _devices(host_state) if len(candidates) > 1 else (),
        )
        verdicts = known.get(state)
        if verdicts is None:
            verdicts = known[state] = _Verdicts(wanted)
        fit = verdicts.of(len(candidates), host_state, limits)
        good = list(itertools.compress(candidates, fit))
        host_state.allocation_candidates = good
        if not good:
            _log_refusal(host_state, spec_obj, "the instance does not fit on it")
            return False
        host_state.limits["numa_topology"] = limits
        return True


class _Verdicts:
    """What Nova says of hosts in one state, for the first candidate, the next...

    Without PCI devices one candidate is as good as another, but Nova gives all of
    a host the same copy of the topology, with what fitting the one before wrote
    into it: with several cells the second verdict can be another than the first.
    """

    def __init__(self, wanted: objects.InstanceNUMATopology) -> None:
        self._wanted = wanted.obj_clone()
        self._said: list[bool] = []

    def of(
        self, count: int, host_state: HostState, limits: objects.NUMATopologyLimits
    ) -> list[bool]:
        """Return the verdicts for a host's candidates, so many of them."""
        while len(self._said) < count:
            fit = hardware.numa_fit_instance_to_host(
                host_state.numa_topology,
                self._wanted,
                limits=limits,
                pci_requests=None,
                pci_stats=host_state.pci_stats,
                provider_mapping=None,
            )
            self._said.append(bool(fit))
        return self._said[:count]


def _state(value: Any) -> Hashable:
    """Return what tells a value of Nova's objects from another, all fields of it."""
    if isinstance(value, base.NovaObject):
        # The attributes behind the fields: reading these is half of the cost.
        of = vars(value)
        return tuple([_state(of.get("_obj_" + name, _UNSET)) for name in value.fields])
    if isinstance(value, list | tuple):
        return tuple([_state(each) for each in value])
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, dict):
        return frozenset((key, _state(each)) for key, each in value.items())
    return value


def _devices(host_state: HostState) -> Hashable:
    """Return how many free PCI devices the cells have."""
    pools = host_state.pci_stats.pools if host_state.pci_stats else ()
    return tuple([(pool["numa_node"], pool["count"]) for pool in pools])


def _log_refusal(
    host_state: HostState, spec_obj: objects.RequestSpec, why: str
) -> None:
    LOG.debug(
        "%s, %s fails NUMA topology requirements: %s.",
        *(host_state.host, host_state.nodename, why),
        instance_uuid=spec_obj.instance_uuid,
    )
