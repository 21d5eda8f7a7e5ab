# SPDX-License-Identifier: Apache-2.0
"""The host under check: facts collected on the host, the policy, Nova's view."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import INVENTORY_FILE, NOVA_DATABASE, Snapshot
from nova_perfvm.generate.hosts import Topology
from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.nova_conf import NovaConfError, VMCPUSets
from nova_perfvm.measure.observed import cpus, domains, processes, topology
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Process
from nova_perfvm.measure.observed.topology import NUMANode
from nova_perfvm.policy import Policy, VMClass

# Sources that know a host's CPU sets; other sources are guesses.
_TOLD: Final = (NOVA_DATABASE, INVENTORY_FILE)


@dataclass(frozen=True)
class HostSubject:
    """A host, parsed from facts of its kernel and libvirt.

    Properties raise :class:`NotReadError` when their files were not collected.

    :ivar policy: None leaves checks of the policy unknown
    :ivar nova: snapshot of this host alone, from ``of_host``; None without one
    """

    collected: Collected
    policy: Policy | None = None
    nova: Snapshot | None = None

    @property
    def needed_policy(self) -> Policy:
        """The policy.

        :raises NotReadError: without a policy
        """
        if self.policy is None:
            raise NotReadError("--policy", "no policy was given")
        return self.policy

    @cached_property
    def nodes(self) -> tuple[NUMANode, ...]:
        """The NUMA nodes."""
        return topology.nodes(self.collected)

    @cached_property
    def topology(self) -> Topology:
        """The NUMA nodes that have CPUs, with their cores."""
        return topology.read(self.collected)

    @cached_property
    def online(self) -> frozenset[int]:
        """The online CPUs."""
        return cpus.online(self.collected)

    @property
    def present(self) -> frozenset[int]:
        """The CPUs of the host, including offline ones."""
        return cpus.numbers(self.collected, f"{cpus.CPU}/present")

    @property
    def offline(self) -> frozenset[int]:
        """The offline CPUs; empty if these are unknown."""
        with suppress(NotReadError):
            return self.present - self.online
        return frozenset()

    def nodes_of(self, numbers: frozenset[int]) -> frozenset[int]:
        """Return the NUMA nodes of the given CPUs."""
        return frozenset(node.number for node in self.nodes if node.cpus & numbers)

    @cached_property
    def _domains(self) -> dict[str, Domain | NotReadError]:
        """{UUID: the domain, or why its XML was not read}."""
        found: dict[str, Domain | NotReadError] = {}
        for uuid in domains.uuids(self.collected):
            try:
                found[uuid] = domains.read(self.collected, uuid)
            except NotReadError as exc:
                found[uuid] = exc
        return found

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The running VMs."""
        found = self._domains.values()
        return tuple(one for one in found if isinstance(one, Domain) and one.running)

    @property
    def unread_domains(self) -> Mapping[str, NotReadError]:
        """{UUID: why the XML was not read}."""
        found = self._domains.items()
        return {uuid: one for uuid, one in found if isinstance(one, NotReadError)}

    @cached_property
    def pinned(self) -> tuple[Domain, ...]:
        """The running VMs that own their CPUs, or should."""
        return tuple(domain for domain in self.domains if self.is_pinned(domain))

    def is_pinned(self, domain: Domain) -> bool:
        """Return whether a VM owns its CPUs, or should."""
        vm_class = self.class_of(domain)
        pinned = vm_class is not None and vm_class.pinned
        return pinned or self._asks_for_pins(domain) or domain.all_pinned

    def class_of(self, domain: Domain) -> VMClass | None:
        """Return the class of a VM; None for no class or an unknown one.

        The flavor's extra specs name the class, in the snapshot or the domain's
        metadata; metadata of an older Nova has the flavor's name only.  Without a class
        an unpinned VM has the policy's default class.
        """
        if self.policy is None or domain.nova is None:
            return None
        pinned = self._asks_for_pins(domain) or domain.all_pinned
        specs = self._extra_specs(domain)
        if specs is not None:
            if const.CLASS_KEY in specs:
                return self.policy.by_name.get(specs[const.CLASS_KEY])
            return None if pinned else self.policy.default_class
        for vm_class in self.policy.classes:
            if domain.nova.flavor in vm_class.flavor_names:
                return vm_class
        if not pinned:
            return self.policy.default_class
        alike = [c for c in self.policy.pinned_classes if domain.vcpus in c.sizes]
        return alike[0] if len(alike) == 1 else None

    def _extra_specs(self, domain: Domain) -> Mapping[str, str] | None:
        server = self.nova and self.nova.server_by_id.get(domain.uuid)
        if server:
            return server.extra_specs
        return domain.nova.extra_specs if domain.nova else None

    def _asks_for_pins(self, domain: Domain) -> bool:
        specs = self._extra_specs(domain) or {}
        properties = (domain.nova and domain.nova.image_properties) or {}
        asked = {specs.get("hw:cpu_policy"), properties.get("hw_cpu_policy")}
        return "dedicated" in asked

    def cpus_of(self, domain: Domain) -> frozenset[int]:
        """Return the CPUs that the XML allows a VM's vCPUs, else all online CPUs."""
        return domain.pinned_cpus or domain.cpus or self.online

    def others_cpus(self, domain: Domain) -> frozenset[int]:
        """Return the CPUs that any other pinned VM is pinned to."""
        others = (other for other in self.pinned if other.uuid != domain.uuid)
        return frozenset().union(*(other.pinned_cpus for other in others))

    @cached_property
    def cpu_sets(self) -> VMCPUSets:
        """CPU sets of nova.conf or the snapshot; without both, CPUs of running VMs."""
        either, source = frozenset[int](), "virsh -r dumpxml of the VMs that run"
        if nova_conf.PATH in self.collected.files:
            try:
                told = nova_conf.parse(self.collected.files[nova_conf.PATH])
            except NovaConfError as exc:
                raise NotReadError(nova_conf.PATH, str(exc)) from exc
            if told.dedicated or told.shared:
                return told
            if told.either:
                either, source = told.either, told.source
        if not either and self.nova and self.nova.hosts[0].cells_source in _TOLD:
            cells = self.nova.hosts[0].cells
            dedicated = frozenset().union(*(cell.pcpuset for cell in cells))
            shared = frozenset().union(*(cell.cpuset for cell in cells))
            source = f"snapshot of {self.nova.taken_at}"
            # Without cpu sets Nova has each CPU in both cpuset and pcpuset.
            either = dedicated & shared
            if not either:
                return VMCPUSets(dedicated, shared, source, whole=True)
        floating = [domain for domain in self.domains if domain not in self.pinned]
        dedicated = frozenset().union(*(domain.pinned_cpus for domain in self.pinned))
        shared = frozenset().union(*map(self.cpus_of, floating))
        return VMCPUSets(dedicated, shared, source, whole=bool(either), either=either)

    @cached_property
    def powered_down(self) -> frozenset[int]:
        """Dedicated CPUs that are offline, and owned by no running VM.

        Nova takes idle CPUs offline with ``[libvirt]cpu_power_management`` and the
        strategy ``cpu_state``, which is assumed without nova.conf.
        """
        sets = self.cpu_sets
        if sets.saves_power not in {None, "cpu_state"}:
            return frozenset()
        asleep = sets.dedicated - self.online
        # Nova skips absent CPUs (nova.virt.libvirt.host, get_available_cpus).
        asleep = asleep and asleep & self.present
        return asleep.difference(*map(self.cpus_of, self.pinned))

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """QEMU's processes."""
        return processes.read(self.collected)

    def process_of(self, domain: Domain) -> Process:
        """Return the process of a VM.

        :raises NotReadError: when no collected process has the VM's UUID
        """
        for process in self.processes:
            if process.uuid == domain.uuid.lower():
                return process
        place = f"/proc/*/cmdline with -uuid {domain.uuid}"
        raise NotReadError(place, "no such process was collected")
