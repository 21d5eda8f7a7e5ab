# SPDX-License-Identifier: Apache-2.0
"""Keep nova-compute to the NUMA nodes that Placement gives to a VM.

With ``placement: cells`` each NUMA node of a host is a provider, and a candidate takes
CPUs of some.  nova-compute knows nothing of that and chooses by itself; but it obeys
the limits of a claim, and these can name physical networks, of which each has affinity
to nodes.  So hosts have one in name only for each node, and here the limits name those
of the candidate.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import Any

from nova import objects
from nova.scheduler.host_manager import HostState
from nova.virt import hardware
from oslo_log import log as logging

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import child_name, child_uuid
from nova_perfvm.scheduler import alike, unreadable

LOG = logging.getLogger(__name__)

Candidate = dict[str, Any]
# Numbers of NUMA nodes, the least first.
Nodes = tuple[int, ...]

_REMEDY = (
    "nova-compute does not know its NUMA nodes by name: take [neutron]physnets and "
    "[neutron_physnet_perfvm_cell_<node>]numa_nodes from 'nova-perfvm host config', "
    "then restart nova-compute"
)


class SteeredHost(HostState):
    """A host as one claim finds it.

    Nova reads the limits of all claims of a request at the end.  So each pass of the
    filter makes these anew: what an earlier server of the request has claimed keeps
    its limits.  Those of one host are equal, as Nova takes no host for an alternate
    that equals one that was claimed.
    """

    def __init__(self, host_state: HostState) -> None:
        # No super(): this is the state of that host, not of a new one.
        vars(self).update(vars(host_state))
        self.limits = dict(host_state.limits)

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


class Steering:
    """The candidates of one request, each judged on its NUMA nodes.

    :param hosts: those whose nodes have no names are remembered there
    """

    def __init__(
        self, spec_obj: objects.RequestSpec, hosts: unreadable.UnreadableHosts
    ) -> None:
        self._spec = spec_obj
        self._hosts = hosts
        asked = spec_obj.pci_requests
        self._devices = asked.requests if asked else None
        self._known: dict[Hashable, dict[Nodes, bool]] = {}

    def concerns(self, host_state: HostState) -> bool:
        """Return whether Placement knows the NUMA nodes that the request takes."""
        return bool(
            self._spec.numa_topology
            and host_state.numa_topology
            and any(map(_nodes_taken, host_state.allocation_candidates))
        )

    def fits(self, host: SteeredHost) -> bool:
        """Keep the candidates of a host that fit, and set the limits of the first.

        The fullest nodes come first, so that whole ones stay free for large VMs.
        Candidates of the same nodes stay in Placement's order.
        """
        cells = host.numa_topology.cells
        numbers = {
            child_uuid(
                host.uuid,
                child_name(host.nodename, f"{const.CELL_SUFFIX}{cell.id}"),
            ): cell.id
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
            self._hosts.found(name, "", _REMEDY)
            return False
        self._hosts.read(name, "")
        free = {cell.id: len(cell.free_pcpus) for cell in cells}
        known = self._verdicts(host)
        found = []
        for nodes, candidate in offered:
            if nodes not in known or self._devices:
                known[nodes] = self._fits(host, nodes, candidate)
            if known[nodes]:
                found.append((sum(free[node] for node in nodes), nodes, candidate))
        if not found:
            LOG.debug(
                "%s, %s: no candidate fits the NUMA nodes that it takes",
                host.host,
                host.nodename,
                instance_uuid=self._spec.instance_uuid,
            )
            return False
        found.sort(key=operator.itemgetter(0, 1))
        host.allocation_candidates = [candidate for *_, candidate in found]
        host.limits["numa_topology"] = self._limits(host, found[0][1])
        return True

    def _verdicts(self, host: SteeredHost) -> dict[Nodes, bool]:
        """Return what is known of hosts in the state of this one, by nodes."""
        if self._devices:
            # With devices each candidate counts, and their pools differ.
            return {}
        try:
            return self._known.setdefault(alike.state_of(host), {})
        except TypeError:
            # Something in the state of the host has no hash.
            return {}

    def _fits(self, host: SteeredHost, nodes: Nodes, candidate: Candidate) -> bool:
        """Return whether nova-compute will fit the VM onto a candidate's nodes."""
        fit = hardware.numa_fit_instance_to_host(
            host.numa_topology,
            # Nova writes into it.
            self._spec.numa_topology.obj_clone(),
            limits=self._limits(host, nodes),
            pci_requests=self._devices,
            pci_stats=host.pci_stats,
            provider_mapping=candidate["mappings"],
        )
        # Others, too, where the VM has more nodes than the candidate.
        return bool(fit) and sorted(cell.id for cell in fit.cells) == list(nodes)

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
    for cell in cells:
        named = "network_metadata" in cell and {
            name
            for name in cell.network_metadata.physnets
            if name.startswith(const.CELL_PHYSNET)
        }
        own = {f"{const.CELL_PHYSNET}{cell.id}"}
        if named != own and (named or cell.id in nodes):
            return False
    return True
