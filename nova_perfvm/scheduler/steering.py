# SPDX-License-Identifier: Apache-2.0
"""Make nova-compute use the NUMA nodes that Placement allocates to a VM.

With ``placement: cells`` each NUMA node of a host is a resource provider, and a
candidate takes CPUs of some nodes.  nova-compute does not read the allocation and
chooses nodes by itself, but it obeys the limits of a claim.  Limits can name physical
networks, which have affinity to NUMA nodes.  So nova.conf declares a marker network for
each node, and this module puts the markers of the candidate's nodes into the limits.

For a server that moves, nova-compute claims other PCI devices than the request names:
see :func:`.instances.devices_claimed`.  A candidate has to fit both sets of devices.

Without the fix of LP 2153425 (Nova 34), nova-conductor drops the limits of live
migrations.  There, the candidate whose nodes nova-compute would choose anyway comes
first.  nova-scheduler predicts these nodes correctly if both services have the same
``[compute]packing_host_numa_cells_allocation_strategy``.
"""

from __future__ import annotations

import copy
import functools
import operator
import weakref
from collections.abc import Callable, Hashable, Sequence

from nova import objects
from nova.objects.fields import PCINUMAAffinityPolicy
from nova.scheduler.host_manager import HostState
from nova.virt import hardware
from oslo_log import log as logging

from nova_perfvm import constants as const
from nova_perfvm.facts.children import cell_name, child_uuid
from nova_perfvm.rules.cells import landing_rank, unnamed
from nova_perfvm.scheduler import alike, candidates, instances, nova_fixes, unreadable
from nova_perfvm.scheduler.candidates import Candidate
from nova_perfvm.scheduler.instances import Devices

LOG = logging.getLogger(__name__)

# IDs of NUMA nodes, ascending.
Nodes = tuple[int, ...]
# For each drawback, the gravest first, whether a candidate has it.
Rank = tuple[bool, ...]
_REMEDY = (
    "nova-compute does not know its NUMA nodes by name: take [neutron]physnets and "
    "[neutron_physnet_perfvm_cell_<node>]numa_nodes from 'nova-perfvm host config', "
    "then restart nova-compute"
)


class SteeredHost(candidates.Attempt):
    """An attempt to claim certain NUMA nodes of a host.

    Nova reads the limits of all claims at the end of a request.  So each pass of the
    filter makes new objects, and the claims of earlier servers keep their limits.
    Objects of two passes for the same host compare equal, as Nova excludes hosts from
    the alternates that equal a claimed host.  Objects of one pass differ, as
    ``_get_sorted_hosts`` of nova/scheduler/manager.py removes the chosen object by ==.
    """

    def __eq__(self, other: object) -> bool:
        """Return whether both are for the same host and node, but of two passes."""
        if self is other:
            return True
        if isinstance(other, SteeredHost) and other.by_host is self.by_host:
            return False
        return isinstance(other, HostState) and self._name == (
            other.host,
            other.nodename,
        )

    def __hash__(self) -> int:
        """Return the hash of host and node."""
        return hash(self._name)

    @property
    def _name(self) -> tuple[str, str]:
        return self.host, self.nodename

    def kept(self) -> Callable[[Candidate], bool]:
        """Keep all candidates: the claimed nodes may have room for the next VM."""
        return lambda _candidate: True


class Steering:
    """Judges the candidates of one request on the NUMA nodes that they take.

    :param hosts: all hosts of the request
    :param unnamed: log of the hosts whose NUMA nodes lack marker networks
    """

    def __init__(
        self,
        spec_obj: objects.RequestSpec,
        hosts: Sequence[HostState],
        unnamed: unreadable.UnreadableHosts,
    ) -> None:
        self._spec = spec_obj
        self._unnamed = unnamed
        self._few = len(hosts) <= candidates.MANY_HOSTS and not candidates.has_its_host(
            hosts, spec_obj
        )
        self._by_host: list[Sequence[weakref.ref[candidates.Attempt]]] = []
        asked = spec_obj.pci_requests
        self._asks = bool(asked and asked.requests)
        self._known: dict[Hashable, dict[Nodes, Rank | None]] = {}

    def concerns(self, host_state: HostState) -> bool:
        """Return whether candidates of the host take CPUs of NUMA node providers."""
        return bool(
            self._spec.numa_topology
            and host_state.numa_topology
            and any(map(_nodes_taken, host_state.allocation_candidates))
        )

    def claims(self, host: SteeredHost) -> list[SteeredHost]:
        """Return the attempts on a host: one for each set of NUMA nodes that fits.

        :meth:`_rank`, then :func:`.landing_rank` sort the attempts.  Concurrent
        requests all begin with the same nodes, and Nova tries one candidate of each
        HostState; the further attempts give it other nodes.  With many hosts, or if
        nova-compute does not see the limits, one attempt has all candidates that fit.
        Candidates for the same nodes keep Placement's order.

        A host whose nodes lack marker networks gets no attempt, and is logged.
        """
        cells = host.numa_topology.cells
        numbers = {
            child_uuid(host.uuid, cell_name(host.nodename, cell.id)): cell.id
            for cell in cells
        }
        offered = []
        for candidate in host.allocation_candidates:
            taken = _nodes_taken(candidate)
            # Skip candidates on other hosts' nodes, or on nodes of a former provider of
            # this host.
            if taken and taken <= numbers.keys():
                nodes = tuple(sorted(numbers[uuid] for uuid in taken))
                offered.append((nodes, candidate))
        name = unreadable.name_of(host)
        if not _are_named(cells, {node for nodes, _ in offered for node in nodes}):
            self._unnamed.found(name, "", _REMEDY)
            return []
        self._unnamed.read(name, "")
        free = {cell.id: len(cell.free_pcpus) for cell in cells}
        devices = alike.free_devices(host)
        known = self._ranks(host)
        found = []
        for nodes, candidate in offered:
            if nodes not in known or self._asks:
                known[nodes] = self._rank(host, nodes, candidate)
            if (rank := known[nodes]) is not None:
                room = sum(free[node] for node in nodes)
                cards = sum(devices[node] for node in nodes)
                order = landing_rank(nodes, room, cards, asks=self._asks)
                found.append((rank, order, nodes, candidate))
        if not found:
            LOG.debug(
                "%s, %s: no candidate fits the NUMA nodes that it takes",
                host.host,
                host.nodename,
                instance_uuid=self._spec.instance_uuid,
            )
            return []
        found.sort(key=operator.itemgetter(0, 1, 2))
        divides = self._few and not self._loses_limits
        by_nodes: dict[Nodes, list[Candidate]] = {}
        for *_, nodes, candidate in found:
            key = nodes if divides else found[0][2]
            by_nodes.setdefault(key, []).append(candidate)
        claims = [SteeredHost(host) for _ in by_nodes]
        self._by_host.append([weakref.ref(claim) for claim in claims])
        for claim, nodes in zip(claims, by_nodes, strict=True):
            claim.allocation_candidates = by_nodes[nodes]
            claim.limits["numa_topology"] = self._limits(host, nodes)
            claim.by_host = self._by_host
        return claims

    def _ranks(self, host: SteeredHost) -> dict[Nodes, Rank | None]:
        """Return the ranks found so far for hosts in the same state, by NUMA nodes."""
        if self._asks:
            # With PCI devices each candidate has its own rank, as pools differ.
            return {}
        try:
            return self._known.setdefault(alike.state_of(host), {})
        except TypeError:
            # A part of the host's state has no hash.
            return {}

    def _rank(
        self, host: SteeredHost, nodes: Nodes, candidate: Candidate
    ) -> Rank | None:
        """Return a candidate's drawbacks; None if the request does not fit.

        First: nova-conductor drops the limits, and nova-compute would choose other
        nodes.  Then those of :meth:`_devices_rank`.
        """
        limits = self._limits(host, nodes)
        for devices in self._devices:
            # Nova may choose other nodes if the VM has more nodes than the candidate.
            if self._fit(host, candidate, limits, devices) != nodes:
                return None
        unlike = self._loses_limits and (
            self._fit(host, candidate, None, self._devices[-1]) != nodes
        )
        return (unlike, *self._devices_rank(host, nodes, candidate))

    def _devices_rank(
        self, host: SteeredHost, nodes: Nodes, candidate: Candidate
    ) -> Rank:
        """Return two drawbacks of a candidate of a request with PCI devices.

        First: nova-compute would claim other devices than the request names.  Second:
        no suitable devices are on the candidate's NUMA nodes.
        """
        if not self._asks:
            return ()
        guest = [objects.InstanceNUMACell(id=node) for node in nodes]
        left = []
        for devices in self._devices:
            left.append(copy.deepcopy(host.pci_stats))
            left[-1].apply_requests(devices, candidate["mappings"], guest)
        near = instances.with_policy(self._devices[0], PCINUMAAffinityPolicy.REQUIRED)
        return (
            left[-1] != left[0],
            not host.pci_stats.support_requests(near, candidate["mappings"], guest),
        )

    @functools.cached_property
    def _devices(self) -> tuple[Devices, ...]:
        """The request's PCI requests, and for a move also those nova-compute claims."""
        if not self._asks:
            return ([],)
        asked = self._spec.pci_requests.requests
        # resize() of nova/compute/api.py drops the policy of flavor and image.
        policy = hardware.get_pci_numa_policy_constraint(
            self._spec.flavor, self._spec.image
        )
        own = instances.with_policy(asked, policy) if policy else asked
        claimed = instances.devices_claimed(self._spec)
        return (own,) if claimed is None else (own, claimed)

    @functools.cached_property
    def _loses_limits(self) -> bool:
        """Whether the request is a live migration whose limits nova-conductor drops."""
        obeys = nova_fixes.has_fix(const.LP_LOST_LIMITS)
        return not obeys and instances.migrates_live(self._spec)

    def _fit(
        self,
        host: SteeredHost,
        candidate: Candidate,
        limits: objects.NUMATopologyLimits | None,
        devices: Devices,
    ) -> Nodes:
        """Return the NUMA nodes that nova-compute would choose; empty if none fit."""
        fit = hardware.numa_fit_instance_to_host(
            host.numa_topology,
            # A copy, as Nova writes into the topology.
            self._spec.numa_topology.obj_clone(),
            limits=limits,
            pci_requests=devices,
            # Without the fix Claim._test_numa_topology() of nova/compute/claims.py
            # passes no pools for a VM without devices.
            pci_stats=host.pci_stats
            if devices or nova_fixes.has_fix(const.LP_NO_PCI_POOLS)
            else None,
            provider_mapping=candidate["mappings"],
        )
        return tuple(sorted(cell.id for cell in fit.cells)) if fit else ()

    def _limits(self, host: SteeredHost, nodes: Nodes) -> objects.NUMATopologyLimits:
        """Return a claim's limits: the nodes' marker networks and the request's own."""
        physnets, tunneled = {f"{const.CELL_PHYSNET}{node}" for node in nodes}, False
        if "network_metadata" in self._spec and self._spec.network_metadata:
            physnets |= self._spec.network_metadata.physnets
            tunneled = self._spec.network_metadata.tunneled
        return objects.NUMATopologyLimits(
            cpu_allocation_ratio=host.cpu_allocation_ratio,
            ram_allocation_ratio=host.ram_allocation_ratio,
            network_metadata=objects.NetworkMetadata(
                physnets=physnets, tunneled=tunneled
            ),
        )


def _nodes_taken(candidate: Candidate) -> frozenset[str]:
    """Return the UUIDs of the providers whose CPUs a candidate takes."""
    return frozenset(
        [
            uuid
            for uuid, taken in candidate["allocations"].items()
            if const.RC_CELL_CPU in taken["resources"]
        ]
    )


def _are_named(cells: list[objects.NUMACell], nodes: set[int]) -> bool:
    """Return whether `nodes` have their marker networks, and no node has another's."""
    physnets = {
        cell.id: cell.network_metadata.physnets if "network_metadata" in cell else set()
        for cell in cells
    }
    return not unnamed(physnets, nodes)
