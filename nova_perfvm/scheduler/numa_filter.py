# SPDX-License-Identifier: Apache-2.0
"""Nova's NUMATopologyFilter, asked once for hosts that are alike."""

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

# The method of Nova's filter that is replaced.
REPLACED: Final = (
    "nova.scheduler.filters.numa_topology_filter.NUMATopologyFilter.host_passes"
)


class PerfVMNUMATopologyFilter(numa_topology_filter.NUMATopologyFilter):
    """Return the verdicts of Nova's NUMATopologyFilter at a fraction of its cost.

    Nova copies the whole request for each host, because what fits the topology
    onto a host writes into it.  Here the topology alone is copied, and hosts whose
    cells are in the same state are judged once per request: an idle rack has one
    verdict.  Hosts, limits and candidates are left as Nova's filter leaves them.

    Nova's own code judges host by host where that is not sure to be the same: for
    requests of PCI devices, for hosts whose state cannot be compared, and for all
    where Nova's method is not the one that this was written for.

    Candidates that take CPUs of NUMA nodes (``placement: cells``) are judged by
    :mod:`~nova_perfvm.scheduler.steering`, each on its nodes.  That is needed whatever
    Nova's method is: another one judges these hosts before, by what else it asks.  It
    is needed for a server whose user pretends a rebuild by a hint, too; a real rebuild
    has no candidates.
    """

    def __init__(self) -> None:
        """Look once whether Nova's method is the known one."""
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
        """Yield the hosts onto whose cells the request's NUMA topology fits."""
        # Of its own, as threads share this filter.
        judge = NUMATopologyOfOneRequest() if self._replaces else self
        hosts = candidates.current(filter_obj_list)
        steered = steering.Steering(spec_obj, hosts, self._unnamed)
        for host in hosts:
            if steered.concerns(host):
                # What an earlier server of the request has claimed stays as it is.
                claim = steering.SteeredHost(host)
                if self._may_steer(claim, spec_obj):
                    yield from steered.claims(claim)
            elif judge._filter_one(host, spec_obj):  # noqa: SLF001
                yield host

    def _may_steer(self, host_state: HostState, spec_obj: objects.RequestSpec) -> bool:
        """Return whether nothing but the room on its nodes can speak against a host."""
        if not self._replaces:
            return bool(self._filter_one(host_state, spec_obj))
        return bool(
            self._satisfies_cpu_policy(
                host_state, spec_obj.flavor.extra_specs, spec_obj.image.properties
            )
        )


class NUMATopologyOfOneRequest(numa_topology_filter.NUMATopologyFilter):
    """Nova's filter for one request: it remembers what it has said of hosts."""

    def __init__(self) -> None:
        """Know nothing yet."""
        super().__init__()
        self._known: dict[Hashable, _Verdicts] = {}

    def host_passes(self, host_state: HostState, spec_obj: objects.RequestSpec) -> bool:
        """Return what Nova's method returns, and leave the host as that does."""
        requests, wanted = spec_obj.pci_requests, spec_obj.numa_topology
        devices = requests and requests.requests
        if devices or (wanted and not host_state.numa_topology):
            # With devices each candidate counts, and their pools differ.
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
            # Something in the state of the host has no hash.
            return bool(super().host_passes(host_state, spec_obj))
        return self._fits(host_state, spec_obj, verdicts)

    def _fits(
        self, host_state: HostState, spec_obj: objects.RequestSpec, verdicts: _Verdicts
    ) -> bool:
        """Keep the candidates of a host that are fit, and set its limits."""
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=host_state.cpu_allocation_ratio,
            ram_allocation_ratio=host_state.ram_allocation_ratio,
        )
        if "network_metadata" in spec_obj and spec_obj.network_metadata:
            # Each host's own, as Nova's are.
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
        """Return what is known of hosts in the state of this one."""
        state = alike.state_of(host_state)
        verdicts = self._known.get(state)
        if verdicts is None:
            verdicts = self._known[state] = _Verdicts(wanted)
        return verdicts


class _Verdicts:
    """What Nova says of hosts in one state, for the first candidate, the next...

    Without PCI devices one candidate is as good as another, but Nova gives all of
    a host the same copy of the topology, with what fitting the one before wrote
    into it: the second verdict can be another than the first.  It also writes while
    it tries the host's cells one after the other: the size of pages that it has
    chosen on the first, though the VM did not fit there, is asked of the next.
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
