# SPDX-License-Identifier: Apache-2.0
"""What a certificate is made of: the files, read, with all mistakes at once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from jc.parsers import proc_cpuinfo

from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import of_host
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.measure import nova_conf, samples
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import cpus
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove import promise, run_notes
from nova_perfvm.measure.prove.run_notes import RunNotes, RunTarget
from nova_perfvm.measure.samples import Better, Samples
from nova_perfvm.measure.statistics.compare import ComparedGroup, Rounds, grouped
from nova_perfvm.policy import Policy, VMClass, loader

UUID: Final = "/sys/class/dmi/id/product_uuid"
DEFAULT_WITHIN_S: Final = 3600.0
_MAC: Final = "/sys/class/net/*/address"

T = TypeVar("T")


class InputsError(PerfVMError):
    """Files that no certificate can be made of; ``mistakes`` has all of them."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        """Keep the mistakes, each with its file."""
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(mistakes))


class EvidenceFile(NamedTuple):
    """A file that a certificate rests on.

    :ivar role: policy, host, guest, samples...
    :ivar sha256: of its bytes, in hex
    """

    role: str
    path: str
    sha256: str


class Guest(NamedTuple):
    """A VM, seen from inside.

    :ivar domain: which of the host's VMs it is, None if none of them
    :ivar how: by what that is known; else why it is not
    :ivar known: whether it is known which VM it is, or that it is none of them
    """

    collected: Collected
    domain: Domain | None
    how: str
    known: bool

    @property
    def name(self) -> str:
        """What to call it."""
        return self.collected.hostname


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
    def guests(self) -> tuple[Guest, ...]:
        """The VMs that were looked into.

        :raises NotReadError: when the host's VMs are not known
        """
        domains = self.host.domains
        return tuple(_matched(one, domains) for one in self.collected)

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
        endpoint = promise.endpoint_of(
            group.metric, better, group.threads, self.flavor, self.vm_class
        )
        return endpoint is not None and group.at_once >= self.together

    def target_of(self, guest: Guest) -> RunTarget | None:
        """Return who a VM is in the samples; None if that is not to be told."""
        alike = [
            target
            for target in (self.run.targets if self.run else ())
            if target.kind == "guest" and target.hostname == guest.collected.hostname
        ]
        namesakes = [
            one for one in self.collected if one.hostname == guest.collected.hostname
        ]
        return alike[0] if len(alike) == len(namesakes) == 1 else None


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
    reading_all = _Reading(paths)
    policy = reading_all.policy()
    wanted = reading_all.attempt(flavor_of, policy, flavor) if policy else None
    host = reading_all.host()
    nova = reading_all.nova(host, read_snapshot)
    guests = reading_all.guests()
    measured, run = reading_all.samples()
    mistakes = reading_all.mistakes
    if mistakes or policy is None or wanted is None or host is None or measured is None:
        raise InputsError(list(dict.fromkeys(mistakes)))
    return Inputs(
        policy=policy,
        flavor=wanted,
        host=HostSubject(host, policy, nova),
        collected=guests,
        samples=measured,
        run=run,
        sources=reading_all.sources,
        within_s=within_s,
    )


class _Reading:
    """Files, and the mistakes in them.

    :ivar sources: those that can be read at all
    """

    def __init__(self, paths: Paths) -> None:
        """Look which files can be read, and hash them."""
        self.paths = paths
        self.mistakes: list[str] = []
        found = [self.attempt(_hashed, role, path) for role, path in _named(paths)]
        self.sources = tuple(one for one in found if one is not None)
        # One that cannot be read is named once.
        self._good = {one.path for one in self.sources}

    def attempt(self, call: Callable[..., T], *arguments: Any) -> T | None:
        """Return what a call returns; None if it finds a mistake."""
        try:
            return call(*arguments)
        except PerfVMError as exc:
            self.mistakes.append(str(exc))
            return None

    def policy(self) -> Policy | None:
        path = self.paths.policy
        named = path is None or path in self._good
        return self.attempt(loader.load, path) if named else None

    def host(self) -> Collected | None:
        """Return what was collected on the host, with its nova.conf."""
        conf = None
        if self.paths.nova_conf in self._good:
            conf = self.attempt(nova_conf.read, self.paths.nova_conf)
        host = None
        if self.paths.host in self._good:
            host = self.attempt(reading.read, self.paths.host, "host")
        if host is None or conf is None:
            return host
        return replace(host, files={**host.files, nova_conf.PATH: conf})

    def nova(
        self,
        host: Collected | None,
        read_snapshot: Callable[[str], Snapshot],
    ) -> Snapshot | None:
        if self.paths.snapshot not in self._good:
            return None
        snapshot = self.attempt(read_snapshot, self.paths.snapshot)
        if snapshot is None or host is None:
            return None
        return self.attempt(of_host, snapshot, host.hostname)

    def guests(self) -> tuple[Collected, ...]:
        named = Counter(self.paths.guests)
        self.mistakes += [
            f"{path}: --guest-collect names it twice"
            for path in named
            if named[path] > 1
        ]
        good = (path for path in named if path in self._good)
        found = [self.attempt(reading.read, path, "guest") for path in good]
        return tuple(one for one in found if one is not None)

    def samples(self) -> tuple[Samples | None, RunNotes | None]:
        path = self.paths.samples
        if path not in self._good:
            return None, None
        found = self.attempt(samples.load, [path])
        if found is None:
            return None, None
        if not found.measurements:
            self.mistakes.append(f"{path}: expected measurements, and it has none")
        measured = {m.who for m in found.measurements}
        return found, self.attempt(run_notes.load, path, measured)


def _named(paths: Paths) -> Iterator[tuple[str, str]]:
    optional = (
        *(("policy", paths.policy), ("nova.conf", paths.nova_conf)),
        ("snapshot", paths.snapshot),
    )
    yield from ((role, path) for role, path in optional if path is not None)
    yield "host", paths.host
    yield from (("guest", path) for path in dict.fromkeys(paths.guests))
    yield "samples", paths.samples


def _hashed(role: str, path: str) -> EvidenceFile:
    try:
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise UnreadableFileError(path, reason) from exc
    return EvidenceFile(role, path, digest)


def flavor_of(policy: Policy, name: str) -> PolicyFlavor:
    """Return the flavor of a name.

    :raises PerfVMError: when the policy has none
    """
    known = generate_flavors(policy)
    for flavor in known:
        if flavor.name == name:
            return flavor
    listed = ", ".join(flavor.name for flavor in known)
    raise PerfVMError(
        f"--flavor {name}: the policy has no such flavor; it has: {listed}"
    )


def _matched(collected: Collected, domains: Sequence[Domain]) -> Guest:
    """Return which VM a guest is: by its UUID, else by its NICs' addresses."""
    uuid = collected.files.get(UUID, "").strip().lower()
    if uuid:
        for domain in domains:
            if domain.uuid.lower() == uuid:
                return Guest(collected, domain, f"UUID {uuid}, {UUID}", known=True)
        return Guest(collected, None, f"UUID {uuid}, {UUID}", known=True)
    own = {text.strip().lower() for text in collected.matching(_MAC).values()}
    by_mac = [d for d in domains if own & {i.mac.lower() for i in d.interfaces} - {""}]
    if len(by_mac) == 1:
        how = f"addresses of its NICs, {_MAC}"
        return Guest(collected, by_mac[0], how, known=True)
    reason = collected.unread.get(UUID, "it was not collected")
    return Guest(
        collected, None, f"{UUID}: {reason}: run guest collect as root", known=False
    )


def cpu_models(collected: Collected) -> frozenset[str]:
    """Return the CPU models that a machine names; none if that was not read."""
    try:
        # What jc makes of the values fails at a line that was cut off, and takes some
        # names for numbers.
        told = proc_cpuinfo.parse(
            collected.files.get("/proc/cpuinfo", ""), raw=True, quiet=True
        )
    except ValueError:
        return frozenset()
    return frozenset(cpu["model name"] for cpu in told if cpu.get("model name"))


def vcpus(collected: Collected) -> int:
    """Return how many CPUs of a guest run.

    :raises NotReadError: when that was not read
    """
    return len(cpus.online(collected).numbers)
