# SPDX-License-Identifier: Apache-2.0
"""Compare a cloud's flavors with the policy's, and plan the changes.

A flavor belongs to the policy if the policy generates its name and it is marked: by
``perfvm:class``, or by the description with which sync creates flavors, before they
have extra specs.  Sync never changes other flavors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Change, CreateName, Left, Plan
from nova_perfvm.changes.sync import assignments, differences
from nova_perfvm.facts.snapshot.resources import Flavor
from nova_perfvm.generate.flavors import PolicyFlavor, all_placement_names
from nova_perfvm.printable import some_of

_MARK: Final = "nova-perfvm: class "

_NOT_SELECTED: Final = "of this policy, and not selected"
_NOT_LISTED: Final = (
    "not listed by this policy: delete it (openstack flavor delete); servers keep the "
    "flavor that they were made with"
)

# As many are named; the rest is counted.
_NAMED_USERS: Final = 3


@dataclass(frozen=True)
class SeenFlavor(Flavor):
    """A flavor as Nova shows it, with the fields that sync compares.

    :ivar swap_mb: swap disk in MiB
    :ivar users: servers that were made with it, or resized to it; None where
        that was not looked up
    """

    ephemeral_gb: int = 0
    swap_mb: int = 0
    description: str | None = None
    users: tuple[str, ...] | None = None

    @property
    def marked(self) -> bool:
        """Return whether sync created it."""
        return (self.description or "").startswith(_MARK)

    @property
    def claims(self) -> bool:
        """Return whether it is marked as a flavor of a policy."""
        return self.marked or const.CLASS_KEY in self.extra_specs


@dataclass(frozen=True)
class CreateFlavor(Change):
    """Create a flavor with all its extra specs, or not at all.

    :ivar id: the ID to create it with; None lets Nova choose
    """

    words = "create flavor {0.name}, {0.detail}"
    action = "create"
    kind = "flavor"
    flavor: PolicyFlavor
    id: str | None = None

    @property
    def name(self) -> str:
        """The flavor's name."""
        return self.flavor.name

    @property
    def detail(self) -> str:
        """The size; extra specs follow from the class."""
        flavor = self.flavor
        return (
            f"class {flavor.class_name}: {flavor.vcpus} vCPUs, {flavor.memory_mb} MiB, "
            f"{flavor.root_gb} GiB root disk"
        )

    @property
    def description(self) -> str:
        """The description that marks it as the policy's from its creation on."""
        return _MARK + self.flavor.class_name


@dataclass(frozen=True)
class DeleteFlavor(Change):
    """Delete a flavor that no server was made with."""

    words = "delete flavor {0.name}, {0.detail}"
    action = "delete"
    kind = "flavor"
    id: str
    name: str
    detail: str


@dataclass(frozen=True)
class SetSpecs(Change):
    """Set extra specs of a flavor.

    :ivar before: the values of those that it has
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
        """The new values and the old ones."""
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


def plan_flavors(
    desired: Sequence[PolicyFlavor],
    observed: Iterable[SeenFlavor],
    known: Collection[str] = (),
    *,
    adopt: Collection[str] = (),
    recreate: bool = False,
    listed: Collection[str] = (),
) -> Plan:
    """Return the steps from the flavors of a cloud to those of a policy.

    :param observed: all flavors of the cloud, private ones too; with their users if
        :func:`resized` finds a difference
    :param known: custom traits and resource classes that Placement knows
    :param adopt: names of flavors to take over although nothing marks them as a
        policy's
    :param recreate: delete flavors of another size that no server uses, and
        create them anew
    :param listed: names of all flavors of the policy, of which desired may be a
        selection
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
        for kind, name in all_placement_names(desired)
        if name not in known
    ]
    left = []
    for flavor in desired:
        seen = by_name.get(flavor.name)
        if seen is None:
            changes.append(CreateFlavor(flavor))
            continue
        fault = _foreign(seen, adopt) or _other_size(seen, flavor, recreate=recreate)
        if fault:
            refusals.append(fault)
            continue
        steps = list(_steps(seen, flavor))
        changes += steps
        if not steps:
            left.append(Left("flavor", flavor.name, "as the policy says"))
    left += [
        Left("flavor", name, _NOT_SELECTED if name in listed else _NOT_LISTED)
        for name, seen in by_name.items()
        if name not in names and seen.claims
    ]
    return Plan(() if refusals else tuple(changes), tuple(refusals), tuple(left))


def resized(seen: SeenFlavor, flavor: PolicyFlavor) -> tuple[str, ...]:
    """Return how an existing flavor's size, which Nova cannot change, differs."""
    pairs = (
        ("vCPUs", seen.vcpus, flavor.vcpus),
        ("MiB of memory", seen.memory_mb, flavor.memory_mb),
        ("GiB of root disk", seen.disk_gb, flavor.root_gb),
        ("GiB of ephemeral disk", seen.ephemeral_gb, 0),
        ("MiB of swap", seen.swap_mb, 0),
    )
    return tuple(
        f"{has} {unit} where the policy says {wanted}"
        for unit, has, wanted in pairs
        if has != wanted
    )


def _steps(seen: SeenFlavor, flavor: PolicyFlavor) -> Iterator[Change]:
    found = differences(seen.extra_specs, flavor.extra_specs)
    other_size = resized(seen, flavor)
    if other_size:
        # The old flavor gets all extra specs of the new one first: if nova-api refuses
        # one of them, the old flavor still exists.
        yield SetSpecs(seen.id, seen.name, flavor.extra_specs, found.changed)
        yield DeleteFlavor(seen.id, seen.name, "; ".join(other_size))
        yield CreateFlavor(flavor, seen.id)
        return
    if found.set:
        yield SetSpecs(seen.id, seen.name, found.set, found.changed)
    for key, value in found.surplus.items():
        yield UnsetSpec(seen.id, seen.name, key, value)


def _foreign(seen: SeenFlavor, adopt: Collection[str]) -> str | None:
    if seen.claims or seen.name in adopt:
        return None
    return (
        f"flavor {seen.name} exists and is not marked as a policy's (it has no "
        f"{const.CLASS_KEY}): take it over with --adopt {seen.name}, or give the "
        "policy's flavors other names (flavors: name in the policy, or --prefix)"
    )


def _other_size(
    seen: SeenFlavor, flavor: PolicyFlavor, *, recreate: bool
) -> str | None:
    """Return why a flavor of another size stays, None if it need not."""
    found = resized(seen, flavor)
    if not found:
        return None
    fault = f"flavor {seen.name} has {', '.join(found)}, which Nova cannot change"
    if seen.users is None or seen.users:
        users = some_of(seen.users or ("servers",), _NAMED_USERS)
        return (
            f"{fault}, and is used by {users}: give the "
            "policy's flavor another name (flavors: name in the policy), sync, resize "
            "these servers to it, and delete the old one"
        )
    if not seen.public:
        return (
            f"{fault}, and is private: delete it, sync, and limit the new one to its "
            "projects yourself"
        )
    if not recreate:
        return (
            f"{fault}; no server uses it: --recreate deletes it and creates it anew "
            "with the same ID"
        )
    return None
