# SPDX-License-Identifier: Apache-2.0
"""Compute the request that a flavor and an image make.

Nova's ``nova.scheduler.utils.ResourceRequest`` computes the same.  This module needs no
Nova.  It models the extra specs and image properties that classes use, and lists others
in ``Request.unseen``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import cpuset
from nova_perfvm.facts import RequestFacts, placement_request
from nova_perfvm.facts.conflicts import HYPERTHREADING, NEEDED, conflicts
from nova_perfvm.facts.demand import Demand, Request, RequestError, with_groups
from nova_perfvm.facts.flavor_facts import flavor_cells, flavor_facts, pins
from nova_perfvm.facts.image_properties import novas
from nova_perfvm.facts.placement_request import Group, grouped
from nova_perfvm.facts.prefilters import Keys, resources, root_traits, traits
from nova_perfvm.facts.snapshot import Flavor, Image
from nova_perfvm.facts.snapshot.pci import POLICIES, PCIRequest

# Nova takes 2147483647 vCPUs, whose numbers alone would fill the memory.
_MOST_CPUS: Final = cpuset.MAX_CPU + 1
_PCI_POLICY: Final = "hw:pci_numa_affinity_policy"
_PCI_PROPERTY: Final = "hw_pci_numa_affinity_policy"
_PCI_ALIAS: Final = "pci_passthrough:alias"
# Most devices of one alias; each device may be a group of a request to Placement.
_MOST_DEVICES: Final = 256
# Extra specs without meaning as long as [pci]alias is unknown.
_OF_ALIASES: Final = (_PCI_POLICY, _PCI_ALIAS)
# Keys whose effect is not modelled: an extra spec for which Cyborg extends the request
# to Placement, and an image property that names boot volumes.
_UNSEEN: Final = ("accel:device_profile", "block_device_mapping")
# Extra specs that make the vCPUs or NUMA nodes of a server unequal.
_UNEVEN: Final = ("hw:cpu_dedicated_mask", "hw:numa_cpus.0", "hw:numa_mem.0")


def request_for(
    flavor: Flavor,
    image: Image | None = None,
    *,
    volume_backed: bool | None = None,
    aliases: Mapping[str, PCIRequest] | None = None,
    devices: Sequence[PCIRequest] | None = None,
    exists: bool = False,
) -> Request:
    """Return the request of a server with a flavor, without zone and project.

    :param image: the server's image; None for an image without relevant properties
    :param volume_backed: whether the root disk is a volume; None if unknown, which
        counts as a disk on the host
    :param aliases: the aliases of [pci]alias by name; None if unknown
    :param devices: the PCI requests of an existing server, in place of the flavor's; a
        NUMA policy of flavor or image replaces theirs, but not a port's.  None for a
        new server, or if not looked up
    :param exists: whether a server with this flavor exists: see :func:`_as_booted`
    :raises RequestError: nova-api refuses the flavor with the image, no host has as
        many CPUs as the flavor has vCPUs, the vCPUs or NUMA nodes are unequal, or an
        amount of the flavor is no whole number
    """
    specs = flavor.extra_specs
    properties: Mapping[str, str] = novas(image.properties) if image else {}
    if exists:
        properties = _as_booted(flavor, properties)
    if flavor.vcpus > _MOST_CPUS:
        raise RequestError(
            f"flavor {flavor.name}: more vCPUs than a host has CPUs; expected at most "
            f"{_MOST_CPUS}"
        )
    keys = Keys(
        specs,
        properties,
        image=image.id if image else "",
        disk_format=image.disk_format if image else "",
        volume_backed=bool(volume_backed),
    )
    uneven = [key for key in _UNEVEN if keys.either(key)]
    if "mixed" in {specs.get(const.CPU_POLICY), properties.get("hw_cpu_policy")}:
        uneven.append(f"{const.CPU_POLICY}=mixed")
    if uneven:
        raise RequestError(
            f"flavor {flavor.name}: the NUMA nodes that Nova makes of "
            f"{', '.join(uneven)} are not known"
        )
    for name, specs_at_fault in conflicts(flavor, properties):
        both = f"{flavor.name} with the image" if image else flavor.name
        said = ", ".join(_said(specs, properties, specs_at_fault))
        raise RequestError(f"nova-api refuses flavor {both} ({name}): {said}")
    pinned = pins(flavor, properties)
    cells = flavor_cells(flavor, properties, pinned=pinned)
    facts = flavor_facts(flavor, properties, cells, volume_backed=volume_backed)
    isolates = specs.get(const.EMULATOR_THREADS) == "isolate"
    # Nova translates the policy alone: who names amounts of PCPU gets these.
    dedicated = keys.either(const.CPU_POLICY) == "dedicated"
    pcpus = flavor.vcpus + isolates if dedicated else 0
    threads = keys.either(const.CPU_THREAD_POLICY)
    if devices is not None or aliases is not None:
        pci_policy = _pci_policy(flavor, properties)
        asked = _devices(flavor, aliases or {}) if devices is None else devices
        devices = [
            replace(one, policy=pci_policy or one.policy) if not one.port else one
            for one in asked
        ]
    unseen = _UNSEEN if devices is not None else (*_UNSEEN, *_OF_ALIASES)
    request = Request(
        facts=facts,
        demand=_demand(flavor, facts, keys, pcpus, threads),
        fallback=_demand(flavor, facts, keys) if dedicated else None,
        keys=keys,
        unseen=tuple(
            key for key in unseen if key in specs or key.replace(":", "_") in properties
        ),
    )
    counted = (one for one in devices or () if one.resource_class)
    groups = [
        Group(f"_pci{number}_{each}", {one.resource_class: 1}, one.traits)
        for number, one in enumerate(counted)
        for each in range(one.count)
    ]
    return replace(with_groups(request, groups), pci=tuple(devices or ()))


def _as_booted(flavor: Flavor, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return an image's properties without those that contradict a server's flavor.

    Such properties were set after the server's boot: nova-api would have refused them
    for the new server.  For an existing server Nova compares flavor and image only in a
    resize to another flavor (nova/compute/api.py, ``same_flavor``), and uses the
    image's properties at boot.
    """
    left = dict(properties)
    pci = {flavor.extra_specs.get(_PCI_POLICY), left.get(_PCI_PROPERTY)}
    if len(pci - {None, ""}) > 1:
        del left[_PCI_PROPERTY]
    while found := next(conflicts(flavor, left), None):
        _, keys = found
        at_fault = {*keys, *(key.replace(":", "_") for key in keys)} & left.keys()
        if not at_fault:
            break
        left = {key: text for key, text in left.items() if key not in at_fault}
    return left


def _pci_policy(flavor: Flavor, properties: Mapping[str, str]) -> str | None:
    """Return the PCI NUMA policy of flavor or image; None if neither has one."""
    asked = flavor.extra_specs.get(_PCI_POLICY), properties.get(_PCI_PROPERTY)
    policies = {policy for policy in asked if policy}
    if len(policies) > 1 or not policies <= {*POLICIES}:
        raise RequestError(
            f"nova-api refuses PCI NUMA policy {' and '.join(sorted(policies))} of "
            f"flavor {flavor.name} and image: expected one of {', '.join(POLICIES)}"
        )
    return next(iter(policies), None)


def _devices(flavor: Flavor, aliases: Mapping[str, PCIRequest]) -> list[PCIRequest]:
    """Return the PCI requests of a flavor.

    :param aliases: the aliases of [pci]alias, by name
    """
    found = []
    text = flavor.extra_specs.get(_PCI_ALIAS)
    for part in text.split(",") if text is not None else ():
        name, _, number = part.partition(":")
        count = placement_request.whole_number(number)
        alias = aliases.get(name.strip())
        if alias is None or count is None or count > _MOST_DEVICES:
            raise RequestError(
                f"nova-api refuses flavor {flavor.name}: {_PCI_ALIAS}={text}: expected "
                f"NAME:COUNT, at most {_MOST_DEVICES}, of names that [pci]alias has: "
                f"{', '.join(sorted(aliases)) or 'none'}"
            )
        found.append(replace(alias, count=count))
    return found


def _said(
    specs: Mapping[str, str], properties: Mapping[str, str], keys: Iterable[str]
) -> Iterator[str]:
    """Yield ``KEY=VALUE``, ``KEY=VALUE of the image`` or ``... is needed`` by key."""
    for key in keys:
        if key in NEEDED:
            yield f"{NEEDED[key]} is needed"
        if key in specs:
            yield f"{key}={specs[key]}"
        # A trait has the same name in both.
        for name in {key, key.replace(":", "_")} & properties.keys():
            yield f"{name}={properties[name]} of the image"


def _demand(
    flavor: Flavor,
    facts: RequestFacts,
    keys: Keys,
    pcpus: int = 0,
    threads: str | None = None,
) -> Demand:
    """Return the request to Placement.

    :param pcpus: amount of PCPU in place of VCPU; 0 for none
    :param threads: the thread policy
    """
    for suffix, name, amount in facts.resources:
        if amount < 0:
            text = flavor.extra_specs[f"resources{suffix}:{name}"]
            raise RequestError(f"flavor {flavor.name}: {text!r} is no whole number")
    first, *others = (
        replace(group, resources={k: v for k, v in group.resources.items() if v})
        for group in grouped(facts.resources, facts.traits)
    )
    named = {name for _, name, _ in facts.resources}
    derived = {"MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.other_disks_gb}
    if not facts.volume_backed:
        derived["DISK_GB"] += flavor.disk_gb
    if named.isdisjoint({"PCPU", "VCPU"}) and not pcpus:
        derived["VCPU"] = flavor.vcpus
    more = {k: v for k, v in derived.items() if v and k not in named}
    if pcpus:
        more["PCPU"] = pcpus
    for name, amount in resources(keys).items():
        more[name] = amount + first.resources.get(name, 0)
    smt = frozenset({HYPERTHREADING})
    required = first.required.union(traits(keys))
    first = replace(
        first,
        resources={**first.resources, **more},
        required=required | smt if threads == "require" else required,
        forbidden=first.forbidden | smt if threads == "isolate" else first.forbidden,
    )
    policy = flavor.extra_specs.get("group_policy")
    return Demand((first, *others), policy, root_traits(keys, {}))
