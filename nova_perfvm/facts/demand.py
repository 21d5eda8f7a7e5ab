# SPDX-License-Identifier: Apache-2.0
"""Compute what a flavor and an image ask of Placement and of the rules.

Nova computes the same in :mod:`nova.virt.hardware` and in
``nova.scheduler.utils.ResourceRequest``.  This module needs no Nova.  It models the
extra specs and image properties that classes use, and lists others in
``Request.unseen``.  For an existing server, the embedded flavor decides.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from oslo_utils import strutils

from nova_perfvm import constants as const
from nova_perfvm import cpuset
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import RequestCell, RequestFacts, placement_request
from nova_perfvm.facts.conflicts import HYPERTHREADING, conflicts, hyperthreading
from nova_perfvm.facts.placement_request import Group, grouped
from nova_perfvm.facts.prefilters import (
    SINCE,
    Keys,
    memory_labels,
    novas,
    resources,
    root_traits,
    traits,
)
from nova_perfvm.facts.snapshot import Flavor, Image, Server, ServerGroup, Snapshot
from nova_perfvm.facts.snapshot.groups import AFFINITY
from nova_perfvm.facts.snapshot.pci import POLICIES, PCIRequest
from nova_perfvm.policy import even_share

# Nova takes 2147483647 vCPUs, whose numbers alone would fill the memory.
_MOST_CPUS: Final = cpuset.MAX_CPU + 1
_PCI_POLICY: Final = "hw:pci_numa_affinity_policy"
_PCI_PROPERTY: Final = "hw_pci_numa_affinity_policy"
_PCI_ALIAS: Final = "pci_passthrough:alias"
# Most devices of one alias; each device may be a group of a request to Placement.
_MOST_DEVICES: Final = 256
# Extra specs without meaning as long as [pci]alias is unknown.
_OF_ALIASES: Final = (_PCI_POLICY, _PCI_ALIAS)
# The trait by which nova-compute 34 marks its providers, and the first version of the
# service that does (MIN_COMPUTE_VERSION_OWNER_TRAIT).
OWNED: Final = "OWNER_NOVA"
_OWNS: Final = 73
# Keys whose effect is not modelled: an extra spec for which Cyborg extends the request
# to Placement, and an image property that names boot volumes.
_UNSEEN: Final = ("accel:device_profile", "block_device_mapping")


# Extra specs that make the vCPUs or NUMA nodes of a server unequal.
_UNEVEN: Final = ("hw:cpu_dedicated_mask", "hw:numa_cpus.0", "hw:numa_mem.0")


class RequestError(PerfVMError):
    """A flavor and image whose request cannot be determined.

    nova-api refuses the pair, no host is large enough, or the vCPUs are unequal.
    """


@dataclass(frozen=True)
class Demand:
    """A request for allocation candidates; the group without a suffix first.

    :ivar group_policy: ``isolate``: no two groups with a suffix share a provider
    :ivar root_required: traits that the host's own provider must have
    """

    groups: tuple[Group, ...]
    group_policy: str | None = None
    root_required: frozenset[str] = frozenset()

    @property
    def required(self) -> frozenset[str]:
        """The traits that any group requires."""
        return frozenset(trait for group in self.groups for trait in group.required)


@dataclass(frozen=True)
class Request:
    """A request as both Placement and the rules see it.

    :ivar fallback: Nova's second request, with VCPU in place of PCPU, which
        [workarounds]disable_fallback_pcpu_query turns off; None without pinned vCPUs
    :ivar project: ID of the project; empty if unknown
    :ivar server: ID of the existing server; empty for a new server
    :ivar group: the server's server group
    :ivar pci: the requested PCI devices
    :ivar pci_claimed: the devices that nova-compute claims when a server moves, one for
        each of ``pci``; empty for a new server, which gets those of ``pci``
    :ivar unseen: extra specs and prefilters whose effect is not modelled
    """

    facts: RequestFacts
    demand: Demand
    fallback: Demand | None = None
    availability_zone: str = ""
    project: str = ""
    server: str = ""
    group: ServerGroup | None = None
    pci: tuple[PCIRequest, ...] = ()
    pci_claimed: tuple[PCIRequest, ...] = ()
    unseen: tuple[str, ...] = ()
    keys: Keys = field(default_factory=Keys)

    @property
    def anchors(self) -> frozenset[str]:
        """IDs of the servers that an affinity group requires on the same host."""
        if self.group is None or self.group.policy != AFFINITY:
            return frozenset()
        return self.group.members


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
        NUMA policy of flavor or image replaces their policy.  None for a new server, or
        if not looked up
    :param exists: whether a server with this flavor exists: see :func:`_as_booted`
    :raises RequestError: nova-api refuses the flavor with the image, no host has as
        many CPUs as the flavor has vCPUs, or the vCPUs or NUMA nodes are unequal
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
    uneven = [key for key in _UNEVEN if _either(specs, properties, key)]
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
    pinned = _pins(flavor, properties)
    cells = _cells(flavor, properties, pinned=pinned)
    facts = _facts(flavor, properties, cells, volume_backed=volume_backed)
    keys = Keys(
        specs,
        properties,
        image=image.id if image else "",
        disk_format=image.disk_format if image else "",
        volume_backed=bool(volume_backed),
    )
    shared = {"VCPU": flavor.vcpus}
    isolates = specs.get(const.EMULATOR_THREADS) == "isolate"
    threads = _either(specs, properties, const.CPU_THREAD_POLICY)
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
        demand=_demand(
            flavor,
            facts,
            keys,
            {"PCPU": flavor.vcpus + isolates} if pinned else shared,
            threads,
        ),
        fallback=_demand(flavor, facts, keys, shared) if pinned else None,
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


def with_groups(request: Request, groups: Sequence[Group]) -> Request:
    """Return the request with further groups for Placement, such as PCI devices."""
    if not groups:
        return request
    demand, fallback = (
        None
        if demand is None
        else replace(
            demand,
            groups=(*demand.groups, *groups),
            # nova-scheduler's choice if the flavor has at most one suffixed group.
            group_policy=demand.group_policy
            or ("none" if len(demand.groups) <= 2 else None),
        )
        for demand in (request.demand, request.fallback)
    )
    assert demand is not None
    return replace(request, demand=demand, fallback=fallback)


def in_cloud(request: Request, snapshot: Snapshot) -> Request:
    """Return a request with the traits that the prefilters of a cloud's Nova add.

    ``owner_nova_filter`` requires OWNER_NOVA once every nova-compute is new enough.  A
    prefilter of ``SINCE`` exists only in newer releases.  If any provider has a trait
    with its prefix, Nova is new enough; else the prefilter's traits are removed, and
    its name is added to ``unseen``.
    """
    demands = (request.demand, request.fallback)
    owned = {OWNED} if snapshot.oldest_compute >= _OWNS else frozenset()
    asked = request.demand.root_required
    kinds = {name: kind for name, kind in SINCE.items() if _any_of(asked, kind)}
    unknown = {
        name: kind
        for name, kind in kinds.items()
        if not any(_any_of(provider.traits, kind) for provider in snapshot.providers)
    }
    left_out = tuple(unknown.values())
    kept = frozenset(t for t in asked if not (left_out and t.startswith(left_out)))
    first, other = (
        demand and replace(demand, root_required=kept | owned) for demand in demands
    )
    assert first is not None
    unseen = (*request.unseen, *unknown)
    return replace(request, demand=first, fallback=other, unseen=unseen)


def _any_of(traits: Iterable[str], kind: str) -> bool:
    """Return whether any trait begins with the prefix `kind`."""
    return any(trait.startswith(kind) for trait in traits)


def _pci_policy(flavor: Flavor, properties: Mapping[str, str]) -> str | None:
    """Return the PCI NUMA policy of flavor or image; None if neither has one."""
    asked = (
        flavor.extra_specs.get(_PCI_POLICY),
        properties.get(_PCI_PROPERTY),
    )
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


def server_facts(server: Server, image: Image | None = None) -> RequestFacts:
    """Return the facts of a request for an existing server, from its embedded flavor.

    The NUMA topology is the server's present one.

    :param image: the server's image today; None if unknown, as for a server that boots
        from a volume
    """
    specs, properties = server.extra_specs, image.properties if image else {}
    try:
        page_size_kb = _page_size_kb(specs, properties)
    except RequestError:
        page_size_kb = None
    cells = tuple(
        RequestCell(
            vcpus=len(cell.vcpus) - len(cell.cpu_pinning),
            pcpus=len(cell.cpu_pinning),
            memory_mb=cell.memory_mb,
            page_size_kb=page_size_kb,
            cpu_thread_policy=_either(specs, properties, const.CPU_THREAD_POLICY),
        )
        for cell in server.cells or ()
    )
    backed = server.volume_backed
    facts = _facts(server.embedded, properties, cells, volume_backed=backed)
    return facts._replace(running_vcpus=server.vcpus if server.built else None)


def _facts(
    flavor: Flavor,
    properties: Mapping[str, str],
    cells: tuple[RequestCell, ...],
    *,
    volume_backed: bool | None,
) -> RequestFacts:
    specs = flavor.extra_specs
    resources, traits = placement_request.read(
        specs, placement_request.required_traits(properties)
    )
    multiqueue = _either(specs, properties, const.VIF_MULTIQUEUE)
    return RequestFacts(
        flavor=flavor.name,
        class_name=specs.get(const.CLASS_KEY),
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        cells=cells,
        emulator_threads=specs.get(const.EMULATOR_THREADS) if cells else None,
        multiqueue=flavor.vcpus > 1 and strutils.bool_from_string(multiqueue),
        volume_backed=volume_backed,
        resources=resources,
        traits=traits,
    )


def _either(
    specs: Mapping[str, str], properties: Mapping[str, str], key: str
) -> str | None:
    """Return the flavor's value of an extra spec, or else the image's value.

    Image properties have _ in place of the colon.
    """
    return specs.get(key) or properties.get(key.replace(":", "_"))


def _said(
    specs: Mapping[str, str], properties: Mapping[str, str], keys: Iterable[str]
) -> Iterator[str]:
    """Yield the values of extra specs in flavor and image, as ``hw_numa_nodes=2``."""
    for key in keys:
        if key in specs:
            yield f"{key}={specs[key]}"
        # A trait has the same name in both.
        for name in {key, key.replace(":", "_")} & properties.keys():
            yield f"{name}={properties[name]} of the image"


def _pins(flavor: Flavor, properties: Mapping[str, str]) -> bool:
    """Return whether Nova pins the vCPUs of the flavor with the image."""
    policy = _either(flavor.extra_specs, properties, const.CPU_POLICY)
    return (policy or "shared") != "shared" or any(
        re.fullmatch(r"resources[^:]*:PCPU", key) for key in flavor.extra_specs
    )


def _cells(
    flavor: Flavor, properties: Mapping[str, str], *, pinned: bool
) -> tuple[RequestCell, ...]:
    """Return the equal NUMA nodes of a server; empty without a NUMA topology."""
    specs = flavor.extra_specs
    text = _either(specs, properties, const.NUMA_NODES) or "0"
    nodes = placement_request.whole_number(text)
    if nodes is None:
        raise RequestError(f"flavor {flavor.name}: {text!r} is no whole number")
    page_size_kb = _page_size_kb(specs, properties)
    if not (nodes or page_size_kb is not None or pinned or memory_labels(specs)):
        return ()
    nodes = nodes or 1
    share = even_share(flavor.vcpus, nodes)
    share_mb = even_share(flavor.memory_mb, nodes)
    if not share or share_mb is None:
        raise RequestError(
            f"nova-api refuses flavor {flavor.name}: its {flavor.vcpus} vCPUs and "
            f"{flavor.memory_mb} MiB do not divide by {nodes} NUMA nodes"
        )
    threads = _either(specs, properties, const.CPU_THREAD_POLICY)
    threads = (threads or hyperthreading(specs, properties)) if pinned else None
    own = share if pinned else 0
    return (RequestCell(share - own, own, share_mb, page_size_kb, threads),) * nodes


def _page_size_kb(
    specs: Mapping[str, str], properties: Mapping[str, str]
) -> int | None:
    asked = specs.get(const.MEM_PAGE_SIZE)
    if asked is None:
        return None
    other = properties.get("hw_mem_page_size")
    # An image may choose a page size if the flavor says any or large.
    text = other if other and asked in {"any", "large"} else asked
    if text in const.PAGE_KINDS:
        return const.PAGE_KINDS[text]
    number = placement_request.whole_number(text)
    if number is not None:
        return number
    try:
        return int(strutils.string_to_bytes(text, return_int=True)) // 1024
    except (ValueError, OverflowError):
        raise RequestError(f"{const.MEM_PAGE_SIZE}={text} is no page size") from None


def _demand(
    flavor: Flavor,
    facts: RequestFacts,
    keys: Keys,
    cpus: Mapping[str, int],
    threads: str | None = None,
) -> Demand:
    """Return the request to Placement.

    :param cpus: amounts of PCPU or VCPU; ignored if the flavor names amounts of these
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
    if named.isdisjoint({"PCPU", "VCPU"}):
        derived |= cpus
    more = {k: v for k, v in derived.items() if v and k not in named}
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
