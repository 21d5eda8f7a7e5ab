# SPDX-License-Identifier: Apache-2.0
"""Simulate new hosts, configured by the rules of ``host config``."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import os_traits

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.conflicts import HYPERTHREADING
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    Aggregate,
    ComputeHost,
    HostCell,
    Inventory,
    Provider,
    Snapshot,
)
from nova_perfvm.generate import labels
from nova_perfvm.generate.hosts import (
    MODES,
    HostConfig,
    HostRequest,
    Mode,
    from_shape,
    generate,
)
from nova_perfvm.generate.hosts.remarks import without_slots
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import HostShape, Policy, shapes

_FORM: Final = re.compile(rf"([1-9]\d{{0,4}})x({shapes.PATTERN})(?:=(\w+))?")
# [DEFAULT]initial_cpu_allocation_ratio
_NOVA_RATIO: Final = 4.0
# Pages of the memory that the host keeps.
_SMALL_KB: Final = 4
# Prefix of the traits for features of Nova's driver, which its release decides.
_OF_DRIVER: Final = "COMPUTE_"
# Namespace of UUIDs for hosts that exist only in a supposed cloud.
_NAMESPACE: Final = uuid.UUID("0d6a2b9c-4b1d-4b55-8a3d-3d2f6f7e9c11")


class NewHostsError(PerfVMError):
    """New hosts that are described wrongly, or that the policy does not allow."""


@dataclass(frozen=True)
class NewHosts:
    """A number of new hosts of one shape.

    :ivar mode: None for elastic hosts if the policy has units, else for dedicated hosts
    """

    count: int
    shape: HostShape
    mode: Mode | None = None

    @classmethod
    def parse(cls, text: str) -> NewHosts:
        """Read ``10x2x24``, ``10x2x24x2`` or ``10x2x24=shared``.

        :raises NewHostsError: when the text has another form
        """
        found = _FORM.fullmatch(text.strip())
        if found is None or found[4] not in {None, *MODES}:
            raise NewHostsError(
                f"{text!r}: expected hosts x NUMA nodes x CPU cores per node "
                f"[=mode], such as 10x2x24; modes: {', '.join(MODES)}"
            )
        return cls(
            int(found[1]), HostShape.parse(found[2]), cast("Mode | None", found[4])
        )


def with_new_hosts(
    policy: Policy, snapshot: Snapshot, new: NewHosts, memory_gb: int
) -> tuple[Snapshot, tuple[str, ...], tuple[str, ...]]:
    """Return the snapshot with added hosts, their names, and why they have no slots.

    The hosts are configured for the mode, but not enrolled.

    :param memory_gb: memory of each host in GiB
    :raises NewHostsError: when the policy or Linux does not allow such hosts
    """
    mode = new.mode or host_scheme_of(policy).modes[0]
    try:
        topology = from_shape(new.shape).with_memory(memory_gb)
        config = generate(HostRequest(policy, topology, mode))
    except PerfVMError as exc:
        told = f"--add {new.count}x{new.shape} --memory-gb {memory_gb}"
        raise NewHostsError(f"{told}: {exc}") from exc
    inventories = dict(_inventories(config, snapshot))
    traits = frozenset(
        (*_additional(config, "traits"), *_nova_traits(snapshot, new.shape))
    )
    zones = [host.availability_zone for host in snapshot.hosts]
    zone = max(zones, key=zones.count, default="")
    hosts, providers = [], []
    taken = {name for host in snapshot.hosts for name in (host.host, host.node)}
    numbered = (f"new-{new.shape}-{number}" for number in itertools.count(1))
    names = (name for name in numbered if name not in taken)
    for name in itertools.islice(names, new.count):
        made = str(uuid.uuid5(_NAMESPACE, name))
        hosts.append(
            ComputeHost(
                host=name,
                node=name,
                provider=made,
                service=made,
                availability_zone=zone,
                vcpus=inventories[const.VCPU].total if const.VCPU in inventories else 0,
                memory_mb=memory_gb * 1024,
                shape=new.shape,
                cells=tuple(_cells(config)),
                cells_source=INVENTORY_FILE,
            )
        )
        providers.append(Provider(made, name, 0, inventories, traits))
    new_names = tuple(host.host for host in hosts)
    aggregates = snapshot.aggregates
    metadata = {}
    if config.label_commands:
        metadata[const.CLASS_KEY] = labels.label_of(config.classes)
    if zone in snapshot.aggregates_by_zone:
        metadata["availability_zone"] = zone
    if metadata:
        # Each --add gets an aggregate of its own: existing aggregates may set traits.
        name = f"perfvm-{new_names[0]}"
        made = str(uuid.uuid5(_NAMESPACE, name))
        aggregates += (Aggregate(0, made, name, metadata, frozenset(new_names)),)
        providers = [replace(p, aggregates=frozenset({made})) for p in providers]
    found = replace(
        snapshot,
        aggregates=aggregates,
        hosts=(*snapshot.hosts, *hosts),
        providers=(*snapshot.providers, *providers),
    )
    return found, new_names, tuple(without_slots(config))


def _least(
    snapshot: Snapshot, resource_class: str, key: Callable[[Inventory], float]
) -> Inventory | None:
    """Return the smallest inventory of a host, to promise too little; None if none."""
    roots = {host.provider for host in snapshot.hosts}
    known = (
        provider.inventories.get(resource_class)
        for provider in snapshot.providers
        if provider.uuid in roots
    )
    return min(filter(None, known), key=key, default=None)


def _inventories(
    config: HostConfig, snapshot: Snapshot
) -> Iterator[tuple[str, Inventory]]:
    sets, memory_mb = config.cpus, config.request.topology.memory_mb or 0
    reserved_mb = sum(share.reserved_mb for share in config.memory)
    yield "MEMORY_MB", Inventory(memory_mb, memory_mb, reserved=reserved_mb)
    if sets.dedicated:
        yield const.PCPU, Inventory(len(sets.dedicated), len(sets.dedicated))
    shared = len(sets.shared | sets.either)
    if shared:
        like = _least(snapshot, const.VCPU, lambda found: found.allocation_ratio)
        ratio = like.allocation_ratio if like else _NOVA_RATIO
        yield const.VCPU, Inventory(shared, shared, allocation_ratio=ratio)
    disk = _least(snapshot, "DISK_GB", lambda found: found.capacity)
    if disk is not None:
        yield "DISK_GB", disk
    for entry in _additional(config, "inventories"):
        yield from ((name, Inventory(**values)) for name, values in entry.items())


def _nova_traits(snapshot: Snapshot, shape: HostShape) -> Iterator[str]:
    """Yield the traits that nova-compute would report on a new host.

    What Nova's release can do is the part that all hosts of the cloud have; a host with
    two threads a core has SMT.
    """
    roots = {host.provider for host in snapshot.hosts}
    each = [p.traits for p in snapshot.providers if p.uuid in roots]
    for trait in frozenset.intersection(*each) if each else ():
        if trait.startswith(_OF_DRIVER) and trait != os_traits.COMPUTE_STATUS_DISABLED:
            yield trait
    if shape.threads > 1:
        yield HYPERTHREADING


def _additional(config: HostConfig, key: str) -> list[Any]:
    (provider,) = (config.provider or {"providers": [{}]})["providers"]
    found: Mapping[str, list[Any]] = provider.get(key, {})
    return found.get("additional", [])


def _cells(config: HostConfig) -> Iterator[HostCell]:
    for node, share in zip(config.request.topology.nodes, config.memory, strict=True):
        pools: tuple[PagePool, ...] = ()
        if share.page_kb is not None:
            small = PagePool(_SMALL_KB, share.reserved_mb * 1024 // _SMALL_KB)
            pools = small, PagePool(share.page_kb, share.pages or 0)
        yield HostCell(
            memory_mb=node.memory_mb or 0, mempages=pools, **config.cpus.cell(node)
        )
