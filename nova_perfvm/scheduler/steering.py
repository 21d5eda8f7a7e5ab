# SPDX-License-Identifier: Apache-2.0
"""Keep nova-compute to the NUMA nodes that Placement gives to a VM.

With ``placement: cells`` each NUMA node of a host is a provider, and a candidate takes
CPUs of some.  nova-compute knows nothing of that and chooses by itself; but it obeys
the limits of a claim, and these can name physical networks, of which each has affinity
to nodes.  So hosts have one in name only for each node, and here the limits name those
of the candidate.

For a server that moves, nova-compute claims other PCI devices than the request names:
see :func:`.instances.devices_claimed`.  A candidate has to fit both requests.

A Nova without the fix of LP 2153425, which came with Nova 34, loses the limits of live
migrations: nova-conductor asks the host without them.  There the candidate comes first
whose nodes nova-compute would choose by itself.  nova-scheduler knows these nodes if
both services have the same
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

# Numbers of NUMA nodes, the least first.
Nodes = tuple[int, ...]
# Drawbacks that a candidate has or not, the weightiest first.
Rank = tuple[bool, ...]
_REMEDY = (
    "nova-compute does not know its NUMA nodes by name: take [neutron]physnets and "
    "[neutron_physnet_perfvm_cell_<node>]numa_nodes from 'nova-perfvm host config', "
    "then restart nova-compute"
)


class SteeredHost(candidates.Attempt):
    """One claim on NUMA nodes of a host.

    Nova reads the limits of all claims of a request at the end.  So each pass of the
    filter makes these anew: what an earlier server of the request has claimed keeps
    its limits.  Those of one host are equal, as Nova takes no host for an alternate
    that equals one that was claimed.
    """

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same host."""
        return isinstance(other, HostState) and self._name == (
            other.host,
            other.nodename,
        )

    def __hash__(self) -> int:
        """Return the same for the same host."""
        return hash(self._name)

    @property
    def _name(self) -> tuple[str, str]:
        return self.host, self.nodename

    def kept(self) -> Callable[[Candidate], bool]:
        """Return that all are left: a node may have room for the next VM."""
        return lambda _candidate: True


class Steering:
    """The candidates of one request, each judged on its NUMA nodes.

    :param hosts: all that the request may come to
    :param unnamed: remembers those whose nodes have no names
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
        """Return whether Placement knows the NUMA nodes that the request takes."""
        return bool(
            self._spec.numa_topology
            and host_state.numa_topology
            and any(map(_nodes_taken, host_state.allocation_candidates))
        )

    def claims(self, host: SteeredHost) -> list[SteeredHost]:
        """Return the claims that Nova may try on a host, one for the same nodes.

        First come those that :meth:`_rank` and then :func:`.landing_rank` put first.
        Requests at the same time all begin there, and Nova tries one candidate of each
        HostState: so there are several, unless there are many hosts to go to.
        Candidates of the same nodes stay in Placement's order.
        """
        cells = host.numa_topology.cells
        numbers = {
            child_uuid(host.uuid, cell_name(host.nodename, cell.id)): cell.id
            for cell in cells
        }
        offered = []
        for candidate in host.allocation_candidates:
            taken = _nodes_taken(candidate)
            # What takes others is not of this host, or of one that was another then.
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
        """Return the ranks found for hosts in the same state, by NUMA nodes."""
        if self._asks:
            # With devices each candidate counts, and their pools differ.
            return {}
        try:
            return self._known.setdefault(alike.state_of(host), {})
        except TypeError:
            # Something in the state of the host has no hash.
            return {}

    def _rank(
        self, host: SteeredHost, nodes: Nodes, candidate: Candidate
    ) -> Rank | None:
        """Return the sort key of a candidate; None if it does not fit the nodes."""
        limits = self._limits(host, nodes)
        for devices in self._devices:
            # It fits onto others, too, where the VM has more nodes than the candidate.
            if self._fit(host, candidate, limits, devices) != nodes:
                return None
        unlike = self._loses_limits and (
            self._fit(host, candidate, None, self._devices[-1]) != nodes
        )
        return (unlike, *self._devices_rank(host, nodes, candidate))

    def _devices_rank(
        self, host: SteeredHost, nodes: Nodes, candidate: Candidate
    ) -> Rank:
        """Return whether devices claimed are not the candidate's, and whether far."""
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
        """The PCI requests of the request, and nova-compute's where they differ."""
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
        """Whether nova-compute claims without the limits that are set here."""
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
            # Nova writes into it.
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
        """Return the limits of a claim on these nodes, the request's networks kept."""
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
    """Return whether some of a host's NUMA nodes have their networks, each its own."""
    physnets = {
        cell.id: cell.network_metadata.physnets if "network_metadata" in cell else set()
        for cell in cells
    }
    return not unnamed(physnets, nodes)
