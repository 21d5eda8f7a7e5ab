# SPDX-License-Identifier: Apache-2.0
"""What a certificate is made of: the files, read, with all mistakes at once."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import of_host
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.measure import nova_conf, samples
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected, Kind, NotReadError
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove import promise, run_notes
from nova_perfvm.measure.prove.run_notes import RunNotes, RunTarget
from nova_perfvm.measure.samples import Better, Samples
from nova_perfvm.measure.statistics.compare import ComparedGroup, Rounds, grouped
from nova_perfvm.policy import Policy, VMClass, loader

RUN: Final = "run of --samples"
UUID: Final = "/sys/class/dmi/id/product_uuid"
DEFAULT_WITHIN_S: Final = 3600.0
_MAC: Final = "/sys/class/net/*/address"

T = TypeVar("T")


class InputsError(PerfVMError):
    """Files that no certificate can be made of; it says all mistakes of all files."""


class Mistakes:
    """Mistakes of several files, which are said together.

    :ivar found: each with its file
    """

    def __init__(self) -> None:
        """Begin without any."""
        self.found: list[str] = []

    def of(self, call: Callable[..., T], *arguments: Any) -> T | None:
        """Return what a call returns; None if it finds a mistake."""
        try:
            return call(*arguments)
        except PerfVMError as exc:
            self.found.append(str(exc))
            return None

    def error(self) -> InputsError:
        """Return the error that says each of them once."""
        return InputsError("\n".join(dict.fromkeys(self.found)))


class EvidenceFile(NamedTuple):
    """A file that a certificate rests on.

    :ivar role: policy, host, guest, samples...
    :ivar sha256: of its bytes, in hex
    """

    role: str
    path: str
    sha256: str


class CollectedMachine(NamedTuple):
    """The host, or a VM seen from inside.

    :ivar who: its names in the samples; none if they are not to be told
    :ivar domain: which of the host's VMs it is, None if none of them
    :ivar how: by what that is known; else why it is not
    :ivar known: whether it is known which VM it is, or that it is none of them
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
        """What to call it."""
        return "host" if self.is_host else self.collected.hostname

    @property
    def vm(self) -> Domain:
        """Which of the host's VMs it is.

        :raises NotReadError: when it is none of them, or nobody can tell
        """
        if self.domain is None:
            raise NotReadError(self.how, "it is not known as a VM of the host")
        return self.domain


@dataclass(frozen=True)
class Paths:
    """The files that are named."""

    host: str
    guests: Sequence[str]
    samples: str
    policy: str | None = None
    nova_conf: str | None = None
    snapshot: str | None = None


@dataclass(frozen=True)
class Inputs:
    """All that a certificate rests on.

    :ivar run: None of samples that bench run has not made
    :ivar within_s: how far apart in time the files may be
    :ivar elsewhere: whether the baseline is of another host, which has to be alike
    """

    policy: Policy
    flavor: PolicyFlavor
    host: HostSubject
    collected: tuple[Collected, ...]
    samples: Samples
    run: RunNotes | None = None
    sources: tuple[EvidenceFile, ...] = ()
    within_s: float = DEFAULT_WITHIN_S
    elsewhere: bool = False

    @cached_property
    def vm_class(self) -> VMClass:
        """The class of the flavor."""
        return self.policy.get_class(self.flavor.class_name)

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
        """Return a VM's name in the samples; none if several may be it."""
        who = {one.who for one in self._targets("guest") if one.hostname == hostname}
        namesakes = [one for one in self.collected if one.hostname == hostname]
        return frozenset(who) if len(who) == len(namesakes) == 1 else frozenset()

    @property
    def vms(self) -> tuple[CollectedMachine, ...]:
        """Those of them of which it is known which VM of the host they are."""
        return tuple(guest for guest in self.guests if guest.domain)

    @cached_property
    def machines(self) -> tuple[CollectedMachine, ...]:
        """The host, and the VMs that were looked into."""
        who = frozenset(target.who for target in self._targets("host"))
        return (CollectedMachine(self.host.collected, who), *self.guests)

    def _targets(self, kind: Kind) -> list[RunTarget]:
        """Return who was measured of a kind; none where nobody noted it."""
        targets = self.run.targets if self.run else ()
        return [target for target in targets if target.kind == kind]

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The VMs of the flavor that run on the host.

        :raises NotReadError: when they are not known
        """
        return tuple(
            domain
            for domain in self.host.domains
            if domain.nova is not None and domain.nova.flavor == self.flavor.name
        )

    @property
    def noted(self) -> RunNotes:
        """What bench run noted.

        :raises NotReadError: when it has not made the samples
        """
        if self.run is None:
            raise NotReadError(RUN, "nothing is noted of it: let bench run measure")
        return self.run

    @property
    def together(self) -> int:
        """How many VMs have to be measured at once: one if nobody can tell."""
        try:
            return max(len(self.domains), 1)
        except NotReadError:
            return 1

    @cached_property
    def measured_groups(self) -> Mapping[ComparedGroup, Rounds]:
        """What was measured in VMs."""
        measured = self.samples.measurements
        return grouped(m for m in measured if m.machine.kind == "guest")

    def is_primary(self, group: ComparedGroup, better: Better) -> bool:
        """Return whether the verdict rests on a group: an endpoint, of all VMs."""
        return group.at_once >= self.together and promise.is_endpoint(
            group.metric, better, group.threads, self.flavor, self.vm_class
        )


def load(
    paths: Paths,
    flavor: str,
    *,
    read_snapshot: Callable[[str], Snapshot],
    within_s: float = DEFAULT_WITHIN_S,
) -> Inputs:
    """Read all files.

    :param flavor: the name of one of the policy's flavors
    :raises InputsError: with all mistakes of all files
    """
    mistakes = Mistakes()
    sources: list[EvidenceFile | None] = []

    def read(
        role: str, reader: Callable[..., T], path: str | None, *more: str
    ) -> T | None:
        if path is None:
            return None
        sources.append(mistakes.of(_hashed, role, path))
        return mistakes.of(reader, path, *more)

    policy = read("policy", loader.load, paths.policy)
    if paths.policy is None:
        policy = mistakes.of(loader.load, None)
    wanted = policy and mistakes.of(flavor_of, policy, flavor)
    conf = read("nova.conf", nova_conf.read, paths.nova_conf)
    snapshot = read("snapshot", read_snapshot, paths.snapshot)
    host = read("host", reading.read, paths.host, "host")
    if host and conf is not None:
        host = replace(host, files={**host.files, nova_conf.PATH: conf})
    nova = mistakes.of(of_host, snapshot, host.hostname) if snapshot and host else None
    guests = [read("guest", reading.read, path, "guest") for path in paths.guests]
    mistakes.found += [
        f"{path}: --guest-collect names it twice"
        for path, times in Counter(paths.guests).items()
        if times > 1
    ]
    measured = read("samples", _measured, paths.samples)
    if mistakes.found or not (policy and wanted and host and measured):
        raise mistakes.error()
    return Inputs(
        policy=policy,
        flavor=wanted,
        host=HostSubject(host, policy, nova),
        collected=tuple(filter(None, guests)),
        samples=measured[0],
        run=measured[1],
        sources=tuple(filter(None, sources)),
        within_s=within_s,
    )


def _hashed(role: str, path: str) -> EvidenceFile:
    with textfile.opened(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return EvidenceFile(role, path, digest)


def _measured(path: str) -> tuple[Samples, RunNotes | None]:
    found = samples.load([path])
    if not found.measurements:
        raise PerfVMError(f"{path}: expected measurements, and it has none")
    return found, run_notes.of_samples(found, path)


def flavor_of(policy: Policy, name: str) -> PolicyFlavor:
    """Return the flavor of a name.

    :raises PerfVMError: when the policy has none
    """
    known = {flavor.name: flavor for flavor in generate_flavors(policy)}
    if name not in known:
        listed = ", ".join(known)
        raise PerfVMError(
            f"--flavor {name}: the policy has no such flavor; it has: {listed}"
        )
    return known[name]


def _matched(collected: Collected, domains: Sequence[Domain]) -> CollectedMachine:
    """Return which VM a guest is: by its UUID, else by its NICs' addresses."""
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
    return frozenset(re.findall(r"^model name\s*: *(.*\S)", text, re.MULTILINE))
