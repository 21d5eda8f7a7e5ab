# SPDX-License-Identifier: Apache-2.0
"""Check that Nova takes images together with the flavors of each class."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.conflicts import LIMITS_OF_CPUS, NEEDED, conflicts
from nova_perfvm.facts.guest_topology import PROPERTIES, topology_of
from nova_perfvm.facts.image_properties import novas
from nova_perfvm.facts.snapshot import Flavor, Image
from nova_perfvm.findings import Finding
from nova_perfvm.policy import VMClass

_OF_PLACES: Final = frozenset(
    {
        *(const.CPU_POLICY, const.CPU_THREAD_POLICY, const.NUMA_NODES),
        *(const.EMULATOR_THREADS, const.MEM_PAGE_SIZE),
    }
)


def check_images(subject: Subject) -> Iterator[Finding]:
    """List images that Nova refuses with flavors of a class, for a key of the class.

    Keys of pinning, NUMA nodes and page sizes aside: images that set these are made for
    other flavors.
    """
    kinds = {
        (flavor.class_name, flavor.vcpus, *sorted(flavor.extra_specs.items())): Flavor(
            id=flavor.name,
            name=flavor.name,
            vcpus=flavor.vcpus,
            memory_mb=flavor.memory_mb,
            disk_gb=flavor.root_gb,
            extra_specs=flavor.extra_specs,
        )
        for flavor in subject.flavors
    }
    flavors = [
        (subject.policy.get_class(str(class_name)), flavor)
        for (class_name, *_), flavor in kinds.items()
    ]
    for image in subject.snapshot.images or ():
        properties = novas(image.properties)
        found: set[tuple[str, ...]] = set()
        # Flavors of several sizes may say the same.
        said: dict[str, tuple[str, ...]] = {}
        for vm_class, flavor in flavors:
            aside = _OF_PLACES | (LIMITS_OF_CPUS if vm_class.guest_topology else set())
            keys = {keys for _, keys in conflicts(flavor, properties)}
            found |= {one for one in keys if not aside.intersection(one)}
            said |= _of_topology(vm_class, flavor, properties)
        for one in sorted(found):
            yield _contradiction(subject, image, one, kinds.values())
        for words, names in said.items():
            yield _conflict(subject, image, words, _unset(names))


def _of_topology(
    vm_class: VMClass, flavor: Flavor, properties: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return why guests lack the topology of their class, and the properties at fault.

    Empty for a class that declares none. An image that nova-api takes may leave Nova
    no topology at all, which fails when the VM spawns, or another one.
    """
    if vm_class.guest_topology is None:
        return {}
    sockets, threads = vm_class.guest_topology.declared(vm_class.cells_per_vm)

    def agrees(properties: Mapping[str, str]) -> bool:
        found = topology_of(flavor, properties)
        declared = found and (sockets or found.sockets, threads)
        return found is not None and (found.sockets, found.threads) == declared

    if agrees(properties):
        return {}
    own = [name for name in PROPERTIES if name in properties]
    subsets = (itertools.combinations(own, n) for n in range(1, len(own) + 1))
    for names in itertools.chain.from_iterable(subsets):
        if agrees({k: v for k, v in properties.items() if k not in names}):
            given = ", ".join(f"{name}={properties[name]}" for name in names)
            seen = topology_of(flavor, properties)
            outcome = f"are {seen}" if seen else "do not boot"
            wanted = topology_of(flavor, {})
            words = (
                f"{given}: guests of {flavor.vcpus} vCPUs {outcome} with it; class "
                f"{vm_class.name} has {wanted} (sockets x cores x threads)"
            )
            return {words: names}
    return {}


def _contradiction(
    subject: Subject, image: Image, keys: tuple[str, ...], flavors: Iterable[Flavor]
) -> Finding:
    """Return the finding of an image whose property contradicts an extra spec.

    :param keys: extra specs: that of the property first, that of the flavor last
    """
    name, spec = keys[0].replace(":", "_"), keys[-1]
    if spec in NEEDED:
        lacking = spec.replace(":", "_")
        given = image.properties.get(lacking)
        said = f"{lacking}={given}" if given else f"{lacking} is not set"
        words = f"{said}: Nova refuses the image with {keys[0]}"
        return _conflict(subject, image, words, f"set --property {NEEDED[spec]}")
    told = next((f.extra_specs[spec] for f in flavors if spec in f.extra_specs), None)
    words = f"{name}={image.properties.get(name, '')}: Nova refuses it"
    if told is None:
        # The image contradicts itself.
        return _conflict(subject, image, f"{words} with any flavor", _unset((name,)))
    same = name == spec.replace(":", "_")
    change = f"set --property {quote(f'{name}={told}')}" if same else _unset((name,))
    words += f" together with flavors that have {spec}={told}"
    return _conflict(subject, image, words, change)


def _unset(names: Iterable[str]) -> str:
    return " ".join(["unset", *(f"--property {name}" for name in names)])


def _conflict(subject: Subject, image: Image, words: str, change: str) -> Finding:
    code = code_for(subject, image, codes.IMAGE_CONFLICT)
    remedy = f"openstack image {change} {image.id}"
    return Finding.of(code, f"image {image.title}", words, remedy)


def code_for(subject: Subject, image: Image, code: str) -> str:
    """Return the code for a finding about an image; tenants' images get a note only."""
    tenants = image.belongs_to_tenant(subject.snapshot.project)
    return codes.TENANT_IMAGE if tenants else code
