# SPDX-License-Identifier: Apache-2.0
"""Nova's NUMATopologyFilter, run once for all hosts in the same state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from nova import objects
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.host_manager import HostState
from nova.virt import hardware
from oslo_log import log as logging

from nova_perfvm.scheduler import (
    alike,
    candidates,
    nova_internals,
    steering,
    unreadable,
)

LOG = logging.getLogger(__name__)

# The method of Nova's filter that PerfVMNUMATopologyFilter replaces.
REPLACED: Final = (
    "nova.scheduler.filters.numa_topology_filter.NUMATopologyFilter.host_passes"
)


class PerfVMNUMATopologyFilter(numa_topology_filter.NUMATopologyFilter):
    """Return the verdicts of Nova's NUMATopologyFilter at a fraction of its cost.

    Nova copies the whole request for each host, because fitting the topology onto a
    host writes into the request.  This filter copies the topology alone, and judges
    hosts in the same state once per request: the hosts of an idle rack share one
    verdict.  Hosts, limits and candidates end up as after Nova's filter.

    Nova's own code judges each host where sharing a verdict could be wrong: for
    requests with PCI devices, for hosts whose state cannot be compared, and for all
    hosts if Nova's method is not a known one (``REPLACED``).

    :mod:`~nova_perfvm.scheduler.steering` judges candidates that take CPUs of NUMA
    nodes (``placement: cells``), each on its nodes.  If Nova's method is unknown, that
    method judges these hosts first.  Steering also applies to a new server that a user
    passes off as a rebuild by a hint; a real rebuild has no candidates.
    """

    def __init__(self) -> None:
        """Check whether Nova's method is a known one, and log a warning if not."""
        super().__init__()
        self._replaces = nova_internals.is_known(REPLACED, type(self).host_passes)
        self._unnamed = unreadable.UnreadableHosts(type(self).__name__, "steer VMs on")
        if not self._replaces:
            LOG.warning(
                "host_passes of NUMATopologyFilter is not the one that "
                "PerfVMNUMATopologyFilter replaces: that judges each host, at the cost "
                "of Nova's own filter."
            )

    def filter_all(
        self, filter_obj_list: Iterable[HostState], spec_obj: objects.RequestSpec
    ) -> Iterator[HostState]:
        """Yield the hosts with room for the NUMA topology, steered ones as attempts."""
        # A new object for each request, as threads share this filter.
        judge = NUMATopologyOfOneRequest() if self._replaces else self
        hosts = candidates.current(filter_obj_list)
        steered = steering.Steering(spec_obj, hosts, self._unnamed)
        for host in hosts:
            if steered.concerns(host):
                # A copy, so that claims of the request's earlier servers keep theirs.
                claim = steering.SteeredHost(host)
                if self._may_steer(claim, spec_obj):
                    yield from steered.claims(claim)
            elif judge._filter_one(host, spec_obj):  # noqa: SLF001
                yield host

    def _may_steer(self, host_state: HostState, spec_obj: objects.RequestSpec) -> bool:
        """Return whether a host passes Nova's check of the CPU policy.

        If Nova's filter is unknown, the host must pass all of it.
        """
        if not self._replaces:
            return bool(self._filter_one(host_state, spec_obj))
        return bool(
            self._satisfies_cpu_policy(
                host_state, spec_obj.flavor.extra_specs, spec_obj.image.properties
            )
        )


class NUMATopologyOfOneRequest(numa_topology_filter.NUMATopologyFilter):
    """Nova's filter for one request, with a memory of verdicts by state of host."""

    def __init__(self) -> None:
        """Start without verdicts."""
        super().__init__()
        self._known: dict[Hashable, _Verdicts] = {}

    def host_passes(self, host_state: HostState, spec_obj: objects.RequestSpec) -> bool:
        """Return Nova's verdict, and change the host as Nova's method does."""
        requests, wanted = spec_obj.pci_requests, spec_obj.numa_topology
        devices = requests and requests.requests
        if devices or (wanted and not host_state.numa_topology):
            # With PCI devices each candidate has its own verdict, as pools differ.
            return bool(super().host_passes(host_state, spec_obj))
        if not self._satisfies_cpu_policy(
            host_state, spec_obj.flavor.extra_specs, spec_obj.image.properties
        ):
            return False
        if not wanted:
            return True
        try:
            verdicts = self._verdicts(host_state, wanted)
        except TypeError:
            # A part of the host's state has no hash.
            return bool(super().host_passes(host_state, spec_obj))
        return self._fits(host_state, spec_obj, verdicts)

    def _fits(
        self, host_state: HostState, spec_obj: objects.RequestSpec, verdicts: _Verdicts
    ) -> bool:
        """Drop the candidates of a host that do not fit, and set the host's limits.

        Return whether any candidate fits.
        """
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=host_state.cpu_allocation_ratio,
            ram_allocation_ratio=host_state.ram_allocation_ratio,
        )
        if "network_metadata" in spec_obj and spec_obj.network_metadata:
            # A copy for each host, as in Nova.
            limits.network_metadata = spec_obj.network_metadata.obj_clone()
        fits = verdicts.on(host_state, limits)
        if not self.filter_candidates(host_state, lambda _candidate: next(fits)):
            LOG.debug(
                "%s, %s fails NUMA topology requirements: no NUMA nodes that fit",
                host_state.host,
                host_state.nodename,
                instance_uuid=spec_obj.instance_uuid,
            )
            return False
        host_state.limits["numa_topology"] = limits
        return True

    def _verdicts(
        self, host_state: HostState, wanted: objects.InstanceNUMATopology
    ) -> _Verdicts:
        """Return the verdicts on hosts in the same state as this host."""
        state = alike.state_of(host_state)
        verdicts = self._known.get(state)
        if verdicts is None:
            verdicts = self._known[state] = _Verdicts(wanted)
        return verdicts


class _Verdicts:
    """Nova's verdicts on the first, second... candidate of hosts in one state.

    Without PCI devices all candidates of a host are equal, but their verdicts can
    differ: Nova uses one copy of the request's topology for all of them, and each try
    writes into it.  Each NUMA node of the host that Nova tries writes, too: the page
    size chosen on the first node, even if the VM did not fit, is required of the next.
    """

    def __init__(self, wanted: objects.InstanceNUMATopology) -> None:
        self._wanted = wanted.obj_clone()
        self._verdicts: list[bool] = []

    def on(
        self, host_state: HostState, limits: objects.NUMATopologyLimits
    ) -> Iterator[bool]:
        """Yield the verdict for each candidate of a host."""
        for number in range(len(host_state.allocation_candidates)):
            if number == len(self._verdicts):
                fit = hardware.numa_fit_instance_to_host(
                    host_state.numa_topology,
                    self._wanted,
                    limits=limits,
                    pci_requests=None,
                    pci_stats=host_state.pci_stats,
                    provider_mapping=None,
                )
                self._verdicts.append(bool(fit))
            yield self._verdicts[number]
