# SPDX-License-Identifier: Apache-2.0
"""The subject of an audit: a policy and a cloud, and values derived from both."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from shlex import quote
from typing import Final, NamedTuple

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.hosts import elastic_hosts
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import HostFacts, Reason, RequestFacts
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.flavor_facts import server_facts
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.hypervisor import Hypervisor, by_host
from nova_perfvm.facts.snapshot import OFFLOADED, ComputeHost, Server, Snapshot
from nova_perfvm.facts.snapshot import Flavor as FlavorToday
from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.generate.options import FileOptions
from nova_perfvm.placement.host_schemes import enrolled_by_another
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules import check_request, resolve_class

# [DEFAULT]long_rpc_timeout (1800 s), the longest time that Nova waits for an answer.
STUCK_AFTER_MIN: Final = 30

# Reasons why a new server must replace a server.
_STRANDED: Final = (
    "it cannot be unshelved. Use its image; or delete it, keep its root volume and use "
    "--volume"
)
_DIVIDED: Final = (
    "its image has hw_numa_mem.0, and a resize keeps it. Use another image"
)
_LOCAL_DISK: Final = (
    "a resize cannot turn the root disk into a volume, or shrink it. Move the data, "
    "then delete the server"
)


class Sync(NamedTuple):
    """The changes that ``flavor sync`` would make, and the reasons for a refusal."""

    changes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    command: str = "openstack perfvm flavor sync"


@dataclass(frozen=True)
class Subject:
    """The data that every check reads.

    :ivar placement_settings: options of placement.conf; None without the file
    :ivar stuck_after_min: minutes after which Nova should have finished with a server
    :ivar nova_settings: options of nova-scheduler's nova.conf; None without the file
    :ivar enforced: the policy that ``nova_settings`` name, or why it was not read
    :ivar wanted: names of hosts or compute nodes to enroll
    :ivar isolated_aggregates: whether aggregates, and not general flavors, keep general
        VMs off hosts with slots
    :ivar collected: the data collected on hosts
    """

    policy: Policy
    snapshot: Snapshot
    placement_settings: FileOptions | None = None
    stuck_after_min: int = STUCK_AFTER_MIN
    nova_settings: FileOptions | None = None
    enforced: Policy | DocumentError | None = None
    wanted: frozenset[str] = frozenset()
    sync: Sync = field(default_factory=Sync)
    isolated_aggregates: bool = False
    collected: tuple[Hypervisor, ...] = ()

    @cached_property
    def hypervisors(self) -> dict[str, Hypervisor]:
        """The data collected on each host, by the compute service's name.

        :raises PerfVMError: when the cloud has no host of the name in a file
        """
        found, others = by_host(self.snapshot.hosts, self.collected)
        for seen in others:
            names = ", ".join(host.host for host in self.snapshot.hosts) or "none"
            raise PerfVMError(
                f"{seen.source} was collected on {seen.hostname}, and the cloud has no "
                f"host of that name; its hosts: {names}"
            )
        return found

    @cached_property
    def requests(self) -> dict[str, RequestFacts]:
        return {server.id: self._request(server) for server in self.snapshot.servers}

    def _request(self, server: Server) -> RequestFacts:
        if server.status == OFFLOADED:
            # Nova shows a server's NUMA topology only while it is on a host.  Images
            # that list NUMA nodes are not modelled: the flavor alone is then used.
            for asking in (server, replace(server, image=None)):
                with suppress(RequestError):
                    return moves.request_of(self.snapshot, asking).facts
        return server_facts(server, self.snapshot.image_of(server))

    @cached_property
    def check_request(self) -> Callable[[RequestFacts], tuple[Reason, ...]]:
        """The rules' reasons against a request, cached for equal requests."""
        return cache(partial(check_request, self.policy))

    @cached_property
    def hosts(self) -> dict[str, HostFacts]:
        """Each host as the scheduler sees it, by the compute service's name."""
        return {view.host: view.facts for view in self.views}

    @cached_property
    def views(self) -> tuple[HostView, ...]:
        return views_of(self.snapshot)

    @cached_property
    def elastic(self) -> tuple[HostView, ...]:
        """The hosts that are enrolled, even partly, and the hosts to enroll."""
        return elastic_hosts(self.views, self.wanted)

    @cached_property
    def elastic_hosts(self) -> dict[str, HostView]:
        """The hosts of ``elastic`` by name, except those that another scheme enrolled.

        Empty if the policy's scheme does not enroll hosts.
        """
        if not scheme_of(self.policy).enrolls:
            return {}
        return {
            host.host: host
            for host in self.elastic
            if not enrolled_by_another(self.policy, host)
        }

    def is_wanted(self, host: ComputeHost) -> bool:
        """Return whether an operator named a host, by either name, to be enrolled."""
        return not self.wanted.isdisjoint({host.host, host.node})

    @cached_property
    def hosts_seen(self) -> dict[str, ComputeHost]:
        """The compute hosts that have a root provider in Placement, by name."""
        # A snapshot file may lack the root of a tree and have its children.
        tops = self.snapshot.trees.keys() & self.snapshot.provider_by_uuid.keys()
        return {h.host: h for h in self.snapshot.hosts if h.provider in tops}

    @cached_property
    def flavors(self) -> tuple[PolicyFlavor, ...]:
        """The policy's flavors; empty if the policy lists none."""
        if not self.policy.lists_flavors:
            return ()
        return generate_flavors(self.policy)

    @cached_property
    def flavors_today(self) -> dict[str, FlavorToday]:
        """The cloud's flavors, by name; servers may have older ones embedded."""
        return {flavor.name: flavor for flavor in self.snapshot.flavors}

    def class_of(self, server: Server) -> VMClass | None:
        """Return the class that a server claims; None if pinned without a class."""
        return resolve_class(self.policy, self.requests[server.id])

    def managed(self, host: str) -> bool:
        """Return whether the policy's rules hold on a host."""
        return self.policy.manages(self.snapshot.labels(host))

    def leave(self, server: Server) -> str:
        """Return the commands that move a server to another host.

        If the rules refuse a server's flavor, PerfVMFilter lets the server migrate to
        no host; then a resize, which changes the host too, is returned.
        """
        request = self.requests[server.id]
        if moves.goes_elsewhere(server) and self.check_request(request):
            return self.resize(server)
        return moves.migrate(server.id, server.status)

    def resize(self, server: Server) -> str:
        """Return the commands that give a server a valid flavor of its class.

        The flavor is the smallest of the policy's flavors with enough memory.  Nova
        refuses a resize to the server's present flavor: then ``flavor sync`` makes a
        copy with a prefix.  A flavor of the same name but other sizes was created anew,
        because sizes of flavors cannot be changed: a resize to it works.
        """
        vm_class = self.class_of(server) or next(iter(self.policy.pinned_classes), None)
        fits = [
            flavor
            for flavor in self.flavors
            if vm_class is not None
            and flavor.class_name == vm_class.name
            and flavor.memory_mb >= server.memory_mb
            and (vm_class.vcpus is not None or flavor.vcpus >= server.vcpus)
        ]
        smallest = min(fits, key=lambda flavor: flavor.memory_mb, default=None)
        if smallest is None:
            return moves.resize(server.id, server.status, "FLAVOR")
        disk = "" if smallest.root_gb else "--boot-from-volume GIB "
        instead = partial(moves.recreate, server.id, quote(smallest.name), disk)
        if self.is_stranded(server):
            return self._of_former_size(server) or instead(_STRANDED)
        if self.divided_by_image(server):
            return instead(_DIVIDED)
        if not server.volume_backed:
            # resize() of nova/compute/api.py and migrate_disk_and_power_off() of
            # nova/virt/libvirt/driver.py refuse to make the disk smaller.
            shrinks = smallest.root_gb < server.disk_gb
            if shrinks or (vm_class and vm_class.disk.source == "volume"):
                return instead(_LOCAL_DISK)
        name, first = smallest.name, ""
        today = self.flavors_today.get(name)
        if (
            today is not None
            and name == server.flavor
            and (today.vcpus, today.memory_mb, today.disk_gb)
            == (server.vcpus, server.memory_mb, server.disk_gb)
        ):
            name, first = f"new-{name}", "openstack perfvm flavor sync --prefix new-\n"
        return first + moves.resize(server.id, server.status, quote(name))

    def is_stranded(self, server: Server) -> bool:
        """Return whether a server is offloaded, and the rules refuse to unshelve it."""
        request = self.requests[server.id]
        return server.status == OFFLOADED and bool(self.check_request(request))

    def divided_by_image(self, server: Server) -> bool:
        """Return whether an image divides a server's memory unevenly.

        A resize keeps the division, and Nova refuses a rebuild that changes it
        (``_validate_numa_rebuild`` of nova/compute/api.py).
        """
        memory_mb = {cell.memory_mb for cell in self.requests[server.id].cells}
        return len(memory_mb) > 1 and "hw:numa_mem.0" not in server.extra_specs

    def _of_former_size(self, server: Server) -> str:
        """Return the commands that unshelve a server after its size is allowed.

        Empty if the rules have other reasons against the server than its size.
        """
        vm_class = self.class_of(server)
        if vm_class is None or vm_class.vcpus is None:
            return ""
        former = (*vm_class.former_vcpus, server.vcpus)
        wider = replace(vm_class, former_vcpus=former)
        classes = tuple(wider if c == vm_class else c for c in self.policy.classes)
        policy = replace(self.policy, classes=classes)
        if check_request(policy, self.requests[server.id]):
            return ""
        return (
            f"# policy, class {vm_class.name}: former_vcpus: {[*former]}; then restart "
            f"nova-scheduler\nopenstack server unshelve {server.id}"
        )
