# SPDX-License-Identifier: Apache-2.0
"""Compare a cloud's flavors with the policy's, and plan the changes.

A flavor belongs to the policy if the policy generates its name and it is marked: by
``perfvm:class``, or by the description with which sync creates flavors, before they
have extra specs.  Sync never changes other flavors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Change, CreateName, Left, Plan
from nova_perfvm.changes.sync import Differences, assignments, differences
from nova_perfvm.facts.snapshot.resources import Flavor
from nova_perfvm.generate.flavors import PolicyFlavor, placement_names
from nova_perfvm.policy import Policy
from nova_perfvm.policy.written_keys import refusal

_MARK: Final = "nova-perfvm: class "
# What sync writes to the description, after the text of somebody else if it has one.
_RECORD: Final = re.compile(rf" ?{_MARK}(\S+?)(?:; wrote (.*))?$", re.DOTALL)

_NOT_SYNCED: Final = (
    "not selected, or no longer listed by the policy: then delete it (openstack flavor "
    "delete); servers keep the flavor that they were made with"
)

_KEPT: Final = "keeps what others set on it (foreign_keys: unset removes it): "


@dataclass(frozen=True)
class SeenFlavor(Flavor):
    """A flavor in Nova, with the fields that sync compares.

    :ivar swap_mb: swap disk in MiB
    """

    ephemeral_gb: int = 0
    swap_mb: int = 0
    description: str | None = None

    @property
    def claims(self) -> bool:
        """Return whether the flavor is marked as a policy's."""
        created = (self.description or "").startswith(_MARK)
        return created or const.CLASS_KEY in self.extra_specs

    @property
    def recorded(self) -> frozenset[str]:
        """The keys that the description says sync wrote; empty without a record."""
        found = _RECORD.search(self.description or "")
        return frozenset((found[2] or "").split() if found else ())

    @property
    def recorded_class(self) -> str | None:
        """The class in the description; None without a record."""
        found = _RECORD.search(self.description or "")
        return found[1] if found else None


@dataclass(frozen=True)
class CreateFlavor(Change):
    """Create a flavor with all its extra specs, or not at all.

    :ivar description: marks the flavor as the policy's, with the record
    """

    words = "create flavor {0.name}, {0.detail}"
    action = "create"
    kind = "flavor"
    flavor: PolicyFlavor
    description: str

    @property
    def name(self) -> str:
        return self.flavor.name

    @property
    def detail(self) -> str:
        """The class and the sizes; extra specs follow from the class."""
        flavor = self.flavor
        return (
            f"class {flavor.class_name}: {flavor.vcpus} vCPUs, {flavor.memory_mb} MiB, "
            f"{flavor.root_gb} GiB root disk"
        )


@dataclass(frozen=True)
class SetSpecs(Change):
    """Set extra specs of a flavor.

    :ivar before: the present values of keys that the flavor has already
    """

    words = "set {0.detail} on flavor {0.name}"
    action = "set"
    kind = "flavor"
    id: str
    name: str
    extra_specs: Mapping[str, str]
    before: Mapping[str, str] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        """The new values, with the old ones."""
        return assignments(self.extra_specs, self.before)


@dataclass(frozen=True)
class UnsetSpec(Change):
    """Remove one extra spec of a flavor."""

    words = "unset {0.detail} on flavor {0.name}"
    action = "unset"
    kind = "flavor"
    id: str
    name: str
    key: str
    before: str

    @property
    def detail(self) -> str:
        """The key and its present value."""
        return f"{self.key} (was {self.before})"


@dataclass(frozen=True)
class RecordKeys(Change):
    """Write the keys that sync has written to the flavor's description."""

    words = "record on flavor {0.name} the keys that the policy wrote"
    action = "record"
    kind = "flavor"
    id: str
    name: str
    description: str

    @property
    def detail(self) -> str:
        """The new description."""
        return self.description


def plan_flavors(
    desired: Sequence[PolicyFlavor],
    observed: Iterable[SeenFlavor],
    known: Collection[str] = (),
    *,
    policy: Policy,
    adopt: Collection[str] = (),
) -> Plan:
    """Return the steps that create a policy's flavors, or change them to match it.

    No step deletes a flavor.  If one flavor is refused, the plan has no steps.

    :param observed: all flavors of the cloud, including private ones
    :param known: custom traits and resource classes that Placement knows
    :param policy: the policy that `desired` is made of
    :param adopt: names of flavors to take over although they are not marked as a
        policy's
    """
    by_name = {flavor.name: flavor for flavor in observed}
    names = {flavor.name for flavor in desired}
    refusals = [
        f"--adopt {name}: the policy generates no such flavor, only "
        + ", ".join(sorted(names))
        for name in sorted(set(adopt) - names)
    ]
    changes: list[Change] = [
        CreateName(name, kind)
        for kind, name in placement_names(desired)
        if name not in known
    ]
    left = []
    for flavor in desired:
        seen = by_name.get(flavor.name)
        if seen is None:
            changes.append(CreateFlavor(flavor, _description(policy, flavor)))
            continue
        fault = _foreign(seen, adopt) or _other_size(seen, flavor)
        if fault:
            refusals.append(fault)
            continue
        found = differences(seen.extra_specs, flavor.extra_specs)
        foreign = _foreign_keys(seen, flavor, policy, found.surplus)
        steps = list(_steps(seen, found, foreign))
        # Last: a run that ends before leaves the old record, whose keys are then unset.
        renamed = seen.recorded_class not in {None, flavor.class_name}
        if renamed or seen.recorded != _remembered(policy, flavor):
            steps.append(_record(seen, _description(policy, flavor)))
        changes += steps
        if not steps:
            left.append(Left("flavor", flavor.name, "as the policy says"))
        if foreign:
            left.append(Left("flavor", flavor.name, _KEPT + assignments(foreign, {})))
    left += [
        Left("flavor", name, _NOT_SYNCED)
        for name, seen in by_name.items()
        if name not in names and seen.claims
    ]
    return Plan(() if refusals else tuple(changes), tuple(refusals), tuple(left))


def _steps(
    seen: SeenFlavor, found: Differences, foreign: Mapping[str, str]
) -> Iterator[Change]:
    if found.set:
        yield SetSpecs(seen.id, seen.name, found.set, found.changed)
    for key, value in found.surplus.items():
        if key not in foreign:
            yield UnsetSpec(seen.id, seen.name, key, value)


def _foreign_keys(
    seen: SeenFlavor, flavor: PolicyFlavor, policy: Policy, surplus: Mapping[str, str]
) -> dict[str, str]:
    """Return the surplus extra specs that others have set, and that stay."""
    if policy.foreign_keys == "unset":
        return {}
    vm_class = policy.get_class(flavor.class_name)
    return {
        key: value
        for key, value in surplus.items()
        if key not in seen.recorded and vm_class.refusal(key) is None
    }


def _remembered(policy: Policy, flavor: PolicyFlavor) -> frozenset[str]:
    """Return a flavor's keys that others may set, too, so that a record is needed."""
    pinned = policy.get_class(flavor.class_name).pinned
    return frozenset(k for k in flavor.extra_specs if not refusal(k, pinned=pinned))


def _description(policy: Policy, flavor: PolicyFlavor) -> str:
    keys = " ".join(sorted(_remembered(policy, flavor)))
    return f"{_MARK}{flavor.class_name}" + (f"; wrote {keys}" if keys else "")


def _record(seen: SeenFlavor, description: str) -> RecordKeys:
    """Return the step that writes the record, behind the text of somebody else."""
    text = _RECORD.sub("", seen.description or "")
    return RecordKeys(seen.id, seen.name, f"{text} {description}".lstrip())


def _foreign(seen: SeenFlavor, adopt: Collection[str]) -> str | None:
    if seen.claims or seen.name in adopt:
        return None
    return (
        f"flavor {seen.name} exists and is not marked as a policy's (it has no "
        f"{const.CLASS_KEY}): take it over with --adopt {seen.name}, or give the "
        "policy's flavors other names (flavors: name in the policy, or --prefix)"
    )


def _other_size(seen: SeenFlavor, flavor: PolicyFlavor) -> str | None:
    """Return how a flavor's sizes differ, which Nova cannot change; None if equal."""
    pairs = (
        ("vCPUs", seen.vcpus, flavor.vcpus),
        ("MiB of memory", seen.memory_mb, flavor.memory_mb),
        ("GiB of root disk", seen.disk_gb, flavor.root_gb),
        ("GiB of ephemeral disk", seen.ephemeral_gb, 0),
        ("MiB of swap", seen.swap_mb, 0),
    )
    found = [
        f"{has} {unit} where the policy says {wanted}"
        for unit, has, wanted in pairs
        if has != wanted
    ]
    if not found:
        return None
    return (
        f"flavor {seen.name} has {', '.join(found)}, which Nova cannot change: delete "
        f"it if no server uses it (openstack server list --all-projects --flavor "
        f"{seen.name}); otherwise give the policy's flavor another name (flavors: name "
        "in the policy), sync, and resize these servers to it"
    )
