# SPDX-License-Identifier: Apache-2.0
"""What a proof is judged by: what was collected and measured, and the promise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from shlex import quote
from typing import Final, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import Collected, Kind, NotReadError
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove import promise
from nova_perfvm.measure.prove.run_notes import MachineSeen, RunNotes
from nova_perfvm.measure.samples import Better, Samples
from nova_perfvm.measure.statistics.compare import ComparedGroup, Rounds, grouped
from nova_perfvm.policy import Policy, VMClass

RUN: Final = "run"
BOOT: Final = "/proc/sys/kernel/random/boot_id"
UUID: Final = "/sys/class/dmi/id/product_uuid"
# How far apart in time what was collected and measured may be.
WITHIN_S: Final = 3600.0
_ARM_CPU: Final = r"^CPU implementer\s*: *(\S+)\n(?:CPU .*\n)*?CPU part\s*: *(\S+)"
_MAC: Final = "/sys/class/net/*/address"


class CollectedMachine(NamedTuple):
    """The host, or a VM seen from inside.

    :ivar who: names of the machine in the samples; empty if unknown
    :ivar domain: the machine's domain on the host; None if the host has no such domain
    :ivar how: UUID or addresses by which `domain` was sought, or why it is unknown
    :ivar known: whether `domain` is sure, also if it is None
    """

    collected: Collected
    who: frozenset[str] = frozenset()
    domain: Domain | None = None
    how: str = ""
    known: bool = False

    @property
    def is_host(self) -> bool:
        """Whether it is the host."""
        return self.collected.kind == "host"

    @property
    def name(self) -> str:
        """``host``, or the hostname of a VM."""
        return "host" if self.is_host else self.collected.hostname

    @property
    def vm(self) -> Domain:
        """The domain of the VM on the host.

        :raises NotReadError: when the host has no such domain, or its domain is unknown
        """
        if self.domain is None:
            raise NotReadError(self.how, "matches no VM of the host")
        return self.domain


@dataclass(frozen=True)
class Inputs:
    """All that a proof rests on.

    :ivar run: notes of the benchmark run
    """

    policy: Policy
    flavor: PolicyFlavor
    host: HostSubject
    collected: tuple[Collected, ...]
    samples: Samples
    run: RunNotes

    @property
    def media_differ(self) -> bool:
        """Whether VMs are on volumes, and the host was measured on a disk of its own.

        The figures of such disks cannot be compared.
        """
        media = self.run.media
        of_host = [media[who] for who in self.machines[0].who & media.keys()]
        return any(one.volume for one in media.values()) and not all(
            one.network for one in of_host
        )

    @cached_property
    def vm_class(self) -> VMClass:
        """The class of the flavor."""
        return self.policy.get_class(self.flavor.class_name)

    @property
    def flavor_word(self) -> str:
        """The flavor's name, quoted for a shell."""
        return quote(self.flavor.name)

    @cached_property
    def guests(self) -> tuple[CollectedMachine, ...]:
        """The VMs that were looked into; none is known if the host's VMs are not."""
        try:
            domains = self.host.domains
            found = [_matched(one, domains) for one in self.collected]
        except NotReadError as exc:
            found = [CollectedMachine(one, how=str(exc)) for one in self.collected]
        return tuple(one._replace(who=self._who(one.name)) for one in found)

    def _who(self, hostname: str) -> frozenset[str]:
        """Return a VM's name in the samples; empty unless exactly one may be it."""
        who = {one.name for one in self._seen("guest") if one.hostname == hostname}
        namesakes = [one for one in self.collected if one.hostname == hostname]
        return frozenset(who) if len(who) == len(namesakes) == 1 else frozenset()

    @property
    def vms(self) -> tuple[CollectedMachine, ...]:
        """The guests that were matched with a domain of the host."""
        return tuple(guest for guest in self.guests if guest.domain)

    @cached_property
    def machines(self) -> tuple[CollectedMachine, ...]:
        """The host, and the VMs that were looked into."""
        who = frozenset(one.name for one in self._seen("host"))
        return (CollectedMachine(self.host.collected, who), *self.guests)

    def _seen(self, kind: Kind) -> list[MachineSeen]:
        """Return what was seen of hosts or guests when the run began, or went on."""
        return [one for one in self.run.seen if one.kind == kind]

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The VMs of the flavor that run on the host.

        :raises NotReadError: when the domains of the host are unknown
        """
        return tuple(
            domain
            for domain in self.host.domains
            if domain.nova is not None and domain.nova.flavor == self.flavor.name
        )

    @property
    def together(self) -> int:
        """How many VMs have to be measured at once: one if nobody can tell."""
        try:
            return max(len(self.domains), 1)
        except NotReadError:
            return 1

    @cached_property
    def measured_groups(self) -> Mapping[ComparedGroup, Rounds]:
        """{group: {round: {who: value}}} of the measurements in VMs."""
        measured = self.samples.measurements
        return grouped(m for m in measured if m.machine.kind == "guest")

    def is_primary(self, group: ComparedGroup, better: Better) -> bool:
        """Return whether the verdict rests on a group: an endpoint, of all VMs."""
        return group.at_once >= self.together and promise.is_endpoint(
            group.metric, better, group.threads, self.flavor, self.vm_class
        )


def flavor_of(policy: Policy, name: str) -> PolicyFlavor:
    """Return the flavor of a name.

    :raises PerfVMError: when the policy has no flavor of this name
    """
    known = {flavor.name: flavor for flavor in generate_flavors(policy)}
    if name not in known:
        listed = ", ".join(known)
        raise PerfVMError(
            f"--flavor {name}: the policy has no such flavor; it has: {listed}"
        )
    return known[name]


def _matched(collected: Collected, domains: Sequence[Domain]) -> CollectedMachine:
    """Return a guest with its domain, by its UUID, else by its NICs' addresses."""
    uuid = collected.files.get(UUID, "").strip().lower()
    macs = {text.strip().lower() for text in collected.matching(_MAC).values()} - {""}
    if uuid:
        own = [domain for domain in domains if domain.uuid.lower() == uuid]
        how = f"UUID {uuid}, {UUID}"
    else:
        own = [d for d in domains if macs & {i.mac.lower() for i in d.interfaces}]
        how = f"addresses of its NICs, {_MAC}"
    if uuid or len(own) == 1:
        domain = own[0] if own else None
        return CollectedMachine(collected, domain=domain, how=how, known=True)
    reason = collected.unread.get(UUID, "it was not collected")
    return CollectedMachine(
        collected, how=f"{UUID}: {reason}: run guest collect as root"
    )


def cpu_models(collected: Collected) -> frozenset[str]:
    """Return the CPU models that a machine names; none if that was not read."""
    text = collected.files.get("/proc/cpuinfo", "")
    found = re.findall(r"^model name\s*: *(.*\S)", text, re.MULTILINE)
    # ARM has no names but numbers.
    arm = re.findall(_ARM_CPU, text, re.MULTILINE)
    return frozenset(found or map(" ".join, arm))
