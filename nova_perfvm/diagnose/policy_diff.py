# SPDX-License-Identifier: Apache-2.0
"""What a change of the policy would do: to flavors, images, hosts and servers."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nova_perfvm.diagnose.audit import Subject, claims, servers, units
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import Finding
from nova_perfvm.generate.flavors import (
    PolicyFlavor,
    generate_flavors,
    properties_of,
)
from nova_perfvm.generate.properties import BUILT_IN, Generator
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import HostShape, Policy, shape_slots


class Difference(NamedTuple):
    """One thing that the new policy makes otherwise.

    :ivar kind: policy, class, flavor, image, host, server, or proposal for what
        the new policy had better say, too
    :ivar name: which one
    :ivar what: the key, figure or extra spec that differs
    :ivar old: empty where there was none
    :ivar new: empty where there will be none
    """

    kind: str
    name: str
    what: str
    old: str
    new: str


def compare(
    old: Policy, new: Policy, generators: Mapping[str, Generator] = BUILT_IN
) -> list[Difference]:
    """List what differs between two policies, and in all that follows from them."""
    return [
        *_keys(old, new),
        *_former_sizes(old, new),
        *_flavors(old, new, generators),
        *_images(old, new, generators),
        *_hosts(old, new),
    ]


def compare_servers(old: Policy, new: Policy, snapshot: Snapshot) -> list[Difference]:
    """List what an audit of a cloud's servers would find, and does not by the old one.

    Servers keep the flavor that they were made with, so a policy that changes a
    class leaves them behind.  Of hosts each policy counts those that it manages.
    """
    before, after = (_found(policy, snapshot) for policy in (old, new))
    known = {(found.subject, found.code) for found in before}
    names = {str(server) for server in snapshot.servers}
    return [
        Difference(
            "server" if found.subject in names else "host",
            found.subject,
            found.code,
            "",
            f"{found.observed}: {' && '.join(found.remedy.splitlines())}",
        )
        for found in after
        if (found.subject, found.code) not in known
    ]


def _found(policy: Policy, snapshot: Snapshot) -> list[Finding]:
    subject = Subject(policy, snapshot)
    checks = (claims.check_servers, servers.check, units.check_flavors)
    return sorted((f for check in checks for f in check(subject)), key=str)


def _keys(old: Policy, new: Policy) -> Iterator[Difference]:
    """Compare the keys of the policy files; flavors are compared as they become."""
    documents = [policy.as_document() for policy in (old, new)]
    classes = [document.pop("classes") for document in documents]
    yield from _differences("policy", "", *map(_flat, documents))
    for name in _ordered(*classes):
        found = [dict(side.get(name, {})) for side in classes]
        for side in found:
            side.pop("flavors", None)
        if all(found):
            yield from _differences("class", name, *map(_flat, found))
        else:
            words = ["declared" if side else "" for side in found]
            yield Difference("class", name, "", *words)


def _former_sizes(old: Policy, new: Policy) -> Iterator[Difference]:
    """Propose the key that lets servers of the old size be moved."""
    for vm_class in new.classes:
        before = old.by_name.get(vm_class.name)
        if before is None or before.vcpus is None or vm_class.vcpus is None:
            continue
        # Pinned or split otherwise, they are not of the class in any size.
        alike = (before.cpu_policy, before.cells_per_vm) == (
            vm_class.cpu_policy,
            vm_class.cells_per_vm,
        )
        if alike and before.vcpus not in vm_class.sizes:
            sizes = sorted({before.vcpus, *vm_class.former_vcpus})
            yield Difference(
                "proposal",
                f"class {vm_class.name}",
                f"servers of {before.vcpus} vCPUs cannot be moved without",
                "",
                f"former_vcpus: {sizes}",
            )


def _flavors(
    old: Policy, new: Policy, generators: Mapping[str, Generator]
) -> Iterator[Difference]:
    before, after = (_by_name(policy, generators) for policy in (old, new))
    for name in _ordered(before, after):
        sides = [side.get(name) for side in (before, after)]
        sizes = [_size(flavor) if flavor else "" for flavor in sides]
        if sizes[0] != sizes[1]:
            yield Difference("flavor", name, "size", *sizes)
        if all(sides):
            specs = [dict(flavor.extra_specs) for flavor in sides if flavor]
            yield from _differences("flavor", name, *specs)


def _images(
    old: Policy, new: Policy, generators: Mapping[str, Generator]
) -> Iterator[Difference]:
    for vm_class in new.classes:
        if vm_class.name in old.by_name:
            properties = [
                properties_of(policy, policy.get_class(vm_class.name), generators).image
                for policy in (old, new)
            ]
            yield from _differences("image", f"class {vm_class.name}", *properties)


def _hosts(old: Policy, new: Policy) -> Iterator[Difference]:
    for shape in dict.fromkeys((*old.host_shapes, *new.host_shapes)):
        sides = [_inventory(policy, shape) for policy in (old, new)]
        yield from _differences("host", str(shape), *sides)


def _inventory(policy: Policy, shape: HostShape) -> dict[str, str]:
    """Return what an empty host of a shape has for VMs of pinned classes."""
    slots = {c.name: shape_slots(c, shape) for c in policy.pinned_classes}
    found = scheme_of(policy).inventory(policy, slots)
    return {"slots": str(max(slots.values(), default=0)), **found}


def _differences(
    kind: str, name: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[Difference]:
    for key in _ordered(old, new):
        if old.get(key) != new.get(key):
            yield Difference(kind, name, key, old.get(key, ""), new.get(key, ""))


def _ordered(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys((*old, *new)))


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            found[prefix + key] = ", ".join(map(str, value))
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            found[prefix + key] = text
    return found


def _by_name(
    policy: Policy, generators: Mapping[str, Generator]
) -> dict[str, PolicyFlavor]:
    if not policy.lists_flavors:
        return {}
    found = generate_flavors(policy, generators=generators)
    return {flavor.name: flavor for flavor in found}


def _size(flavor: PolicyFlavor) -> str:
    return f"{flavor.vcpus} vCPUs, {flavor.memory_mb} MiB, {flavor.root_gb} GiB disk"
