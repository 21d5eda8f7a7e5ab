# SPDX-License-Identifier: Apache-2.0
"""Compare two policies by their effects on flavors, images, hosts and servers."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from nova_perfvm.diagnose.audit import Subject, claims, servers, units
from nova_perfvm.facts.live_migration import obstacle
from nova_perfvm.facts.prefilters import Keys
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import Finding
from nova_perfvm.generate.flavors import generate_flavors, properties_of
from nova_perfvm.generate.properties.declared import declared
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import HostShape, Policy, VMClass, shape_slots


class Difference(NamedTuple):
    """One thing that differs under the new policy.

    :ivar kind: policy, class, flavor, image, host, server; or proposal, for a key that
        the new policy should have
    :ivar name: of the thing
    :ivar what: the key, figure or extra spec that differs; empty for the whole thing
    :ivar old: empty if the old policy has none
    :ivar new: empty if the new policy has none
    """

    kind: str
    name: str
    what: str
    old: str
    new: str


def compare(old: Policy, new: Policy) -> list[Difference]:
    """List the differences between two policies, and between their effects."""
    shapes = dict.fromkeys((*old.host_shapes, *new.host_shapes))
    before, after = (_derived(policy, shapes) for policy in (old, new))
    found = []
    for kind, name in dict.fromkeys((*before, *after)):
        one, other = (side.get((kind, name)) for side in (before, after))
        if one is None or other is None:
            declared = ["" if side is None else "declared" for side in (one, other)]
            found.append(Difference(kind, name, "", *declared))
            continue
        found += [
            Difference(kind, name, key, one.get(key, ""), other.get(key, ""))
            for key in dict.fromkeys((*one, *other))
            if one.get(key) != other.get(key)
        ]
    return [*found, *_former_sizes(old, new)]


def _derived(
    policy: Policy, shapes: Iterable[HostShape]
) -> dict[tuple[str, str], dict[str, str]]:
    """Return a policy's keys and the figures derived from them, by kind and name.

    The flavors of classes appear as the generated flavors.
    """
    document = policy.as_document()
    classes = document.pop("classes")
    found = {("policy", ""): _flat(document)}
    for name, keys in classes.items():
        found["class", name] = _flat({k: v for k, v in keys.items() if k != "flavors"})
    if policy.lists_flavors:
        for flavor in generate_flavors(policy):
            size = f"{flavor.vcpus} vCPUs, {flavor.memory_mb} MiB, "
            size += f"{flavor.root_gb} GiB disk"
            found["flavor", flavor.name] = {"size": size, **flavor.extra_specs}
    for vm_class in policy.classes:
        given = properties_of(policy, vm_class)
        found["image", f"class {vm_class.name}"] = dict(given.image)
        why = obstacle(Keys(given.flavor, given.image))
        live = f"no: {why}" if why else "yes"
        found["class", vm_class.name]["migrated live"] = live
    for shape in shapes:
        # The slots and inventory of an empty host for VMs of pinned classes.
        slots = {c.name: shape_slots(c, shape) for c in policy.pinned_classes}
        most = {"slots": str(max(slots.values(), default=0))}
        inventory = host_scheme_of(policy).inventory(policy, slots)
        found["host", str(shape)] = most | inventory
    return found


def compare_servers(old: Policy, new: Policy, snapshot: Snapshot) -> list[Difference]:
    """List the findings about a cloud's servers that the new policy adds.

    Servers keep the flavor that they were made with, so a policy that changes a class
    leaves them behind.  Each policy counts only the hosts that it manages.
    """
    before, after = (_found(policy, snapshot) for policy in (old, new))
    known = {str(found) for found in before}
    names = {str(server) for server in snapshot.servers}
    worse = [
        Difference(
            "server" if found.subject in names else "host",
            found.subject,
            found.code,
            "",
            f"{found.observed}: {' && '.join(found.remedy.splitlines())}",
        )
        for found in after
        if str(found) not in known
    ]
    return [*_left_behind(old, new, snapshot), *worse]


def _left_behind(old: Policy, new: Policy, snapshot: Snapshot) -> Iterator[Difference]:
    """Yield the servers that need a resize to have keys that the new policy changes.

    Placement's keys aside, which the audit's checks judge.
    """
    subject = Subject(new, snapshot)
    for server in snapshot.servers:
        vm_class = subject.class_of(server)
        former = vm_class and old.by_name.get(vm_class.name)
        if not (vm_class and former):
            continue
        one, other = _keys_of(old, former), _keys_of(new, vm_class)
        changed = {key for key in one | other if one.get(key) != other.get(key)}
        for key in sorted(changed):
            has, wants = server.extra_specs.get(key), other.get(key)
            if has != wants:
                need = f"{wants or '(not set)'}: " + " && ".join(
                    subject.resize(server).splitlines()
                )
                yield Difference("server", str(server), key, has or "(not set)", need)


def _keys_of(policy: Policy, vm_class: VMClass) -> dict[str, str]:
    """Return the extra specs of a class's flavors, except Placement's keys."""
    return {**declared(policy, vm_class).flavor, **vm_class.extra_specs}


def _found(policy: Policy, snapshot: Snapshot) -> list[Finding]:
    subject = Subject(policy, snapshot)
    checks = (claims.check_servers, servers.check, units.check_flavors)
    return sorted((f for check in checks for f in check(subject)), key=str)


def _former_sizes(old: Policy, new: Policy) -> Iterator[Difference]:
    """Propose the key that lets servers of the old size be moved."""
    for vm_class in new.classes:
        before = old.by_name.get(vm_class.name)
        if before is None or before.vcpus is None or vm_class.vcpus is None:
            continue
        # Servers with another CPU policy or number of cells do not belong to the class
        # in any size.
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
