# SPDX-License-Identifier: Apache-2.0
"""provider.yaml offers what the policy gives the host; Placement has just that.

nova-compute adds to Placement what its files say.  Traits that a file no longer has
stay there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from nova_perfvm import constants as const
from nova_perfvm.facts import NUMACell
from nova_perfvm.findings import Finding, Level
from nova_perfvm.generate.hosts import HostRequest, Mode, provider
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import NO_POLICY, HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules.slots import host_slots

_DIRECTORY = "/etc/nova/provider_config"
# What the collector says of a host that has no such directory.
_ABSENT = "no such file or directory"
# What disks give is not to be seen; enrolling, not a file, makes the others.
_NOT_JUDGED = (const.RC_READ_IOPS, const.RC_WRITE_IOPS, const.RC_UNIT)
_ENROLLED = (const.TRAIT_ELASTIC, const.TRAIT_CHILD)


class Offer(NamedTuple):
    """What a host offers by the project's names.

    :ivar totals: {resource class: total}
    """

    totals: Mapping[str, int]
    traits: frozenset[str]

    def __str__(self) -> str:
        """Return it in words."""
        parts = [f"{name} {total}" for name, total in sorted(self.totals.items())]
        return ", ".join([*parts, *sorted(self.traits)]) or "nothing"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Compare the files with the policy, and Placement with the files."""
    if subject.policy is None:
        yield skipped("", NO_POLICY)
        return
    offer, source = _of_files(subject)
    try:
        yield _against_policy(subject, subject.policy, offer, source)
    except NotReadError as exc:
        yield skipped("files", exc.reason, exc.place)
    if subject.nova is None or subject.nova.provider is None:
        yield skipped("Placement", "what Placement has is not known: add --snapshot")
        return
    found = Offer(
        _own({n: i.total for n, i in subject.nova.provider.inventories.items()}),
        _own_traits(subject.nova.provider.traits),
    )
    stale = found.traits - offer.traits
    yield judged(
        "Placement",
        f"what the files say: {offer}",
        str(found),
        f"{subject.nova.source}; {source}",
        holds=found == offer,
        remedy=(
            f"the traits {', '.join(sorted(stale))} outlived their file: openstack "
            "resource provider trait set with all the others, as nova-compute does not "
            "take them away"
            if stale
            else "restart nova-compute, which reads the files, and read its log"
        ),
    )


def _own(totals: Mapping[str, int]) -> dict[str, int]:
    return {
        name: total
        for name, total in totals.items()
        if name.startswith(const.CUSTOM_PREFIX) and name not in _NOT_JUDGED
    }


def _own_traits(traits: frozenset[str]) -> frozenset[str]:
    return frozenset(
        trait
        for trait in traits
        if trait.startswith(const.CUSTOM_PREFIX) and not trait.startswith(_ENROLLED)
    )


def _of_files(subject: HostSubject) -> tuple[Offer, str]:
    """Return what the files offer, and where that was read.

    :raises NotReadError: when they could not be read
    """
    files = subject.collected.matching(f"{_DIRECTORY}/*.yaml")
    unread = {
        path: reason
        for path, reason in subject.collected.unread.items()
        if path.startswith(_DIRECTORY)
    }
    absent = unread.pop(_DIRECTORY, None) == _ABSENT
    for path, reason in unread.items():
        raise NotReadError(path, reason)
    if not files and not absent:
        reason = subject.collected.unread.get(_DIRECTORY, "no file of it was collected")
        raise NotReadError(_DIRECTORY, reason)
    totals: dict[str, int] = {}
    traits: set[str] = set()
    for path, text in files.items():
        try:
            for document in _providers(yaml.safe_load(text)):
                totals |= _totals(document)
                traits |= set((document.get("traits") or {}).get("additional") or ())
        except (yaml.YAMLError, AttributeError, TypeError, ValueError) as exc:
            problem = str(exc).splitlines()[0]
            raise NotReadError(path, f"it cannot be understood: {problem}") from exc
    source = ", ".join(files) or f"{_DIRECTORY}, without a file"
    return Offer(_own(totals), _own_traits(frozenset(traits))), source


def _providers(document: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (document or {}).get("providers") or []
    return found


def _totals(document: dict[str, Any]) -> dict[str, int]:
    listed = (document.get("inventories") or {}).get("additional") or ()
    return {
        name: int(inventory["total"])
        for item in listed
        for name, inventory in item.items()
    }


def _against_policy(
    subject: HostSubject, policy: Policy, offer: Offer, source: str
) -> Finding:
    sets = subject.cpu_sets
    if not sets.whole:
        reason = "Nova's sets are not known: add --nova-conf or --snapshot"
        raise NotReadError(sets.source, reason)
    wanted = _wanted(subject, policy, _class(policy, offer))
    more = any(total > wanted.totals.get(n, 0) for n, total in offer.totals.items())
    wrong = more or offer.traits != wanted.traits
    return judged(
        "files",
        f"what the policy gives the host: {wanted}",
        str(offer),
        f"{source}; {sets.source}",
        holds=offer == wanted,
        # Fewer slots only leave room unused.
        otherwise=Level.FAILURE if wrong else Level.WARNING,
        remedy="nova-perfvm host config writes provider.yaml; restart nova-compute",
    )


def _class(policy: Policy, offer: Offer) -> VMClass | None:
    """Return the pinned class that a host is for: the only one, or what it offers."""
    classes = policy.pinned_classes
    if len(classes) < 2:
        return classes[0] if classes else None
    offered = [
        c for c in classes if scheme_of(policy).slot_class(policy, c) in offer.totals
    ]
    if len(offered) != 1:
        reason = (
            "the policy has several pinned classes, and the files name none or many"
        )
        raise NotReadError(_DIRECTORY, reason)
    return offered[0]


def _wanted(subject: HostSubject, policy: Policy, vm_class: VMClass | None) -> Offer:
    sets, topology = subject.cpu_sets, subject.topology
    usable = sets.dedicated | sets.shared
    cells = [
        NUMACell(
            node.id,
            node.cpus & sets.shared,
            node.cpus & sets.dedicated,
            frozenset(),
            node.memory_mb or 0,
            0,
            [core for core in (frozenset(c) & usable for c in node.cores) if core],
        )
        for node in topology.nodes
    ]
    mode: Mode = "shared"
    if sets.dedicated:
        mode = "mixed" if sets.shared else "dedicated"
    dedicated = vm_class is not None and bool(sets.dedicated)
    room = host_slots(vm_class, cells, 0) if vm_class and dedicated else 0
    document = provider.provider_document(
        HostRequest(policy, topology, mode),
        vm_class if dedicated else None,
        scheme_of(policy).usable_slots(policy, room),
        {},
    )
    (wanted,) = _providers(document) or [{}]
    return Offer(
        _totals(wanted),
        frozenset((wanted.get("traits") or {}).get("additional") or ()),
    )


CHECK = Check(
    115, "hypervisor.provider_yaml", "The host offers what the policy gives it", find
)
