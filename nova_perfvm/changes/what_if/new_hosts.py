# SPDX-License-Identifier: Apache-2.0
"""Hosts that are not there yet, as ``host config`` would configure them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    ComputeHost,
    HostCell,
    Inventory,
    Provider,
    Snapshot,
)
from nova_perfvm.generate.hosts import (
    MODES,
    HostConfig,
    HostRequest,
    Mode,
    from_shape,
    generate,
)
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import HostShape, Policy, shapes

_FORM: Final = re.compile(rf"([1-9]\d{{0,4}})x({shapes.PATTERN})(?:=(\w+))?")
# [DEFAULT]initial_cpu_allocation_ratio
_NOVA_RATIO: Final = 4.0
# Of hosts that there are in no cloud.
_NAMESPACE: Final = uuid.UUID("0d6a2b9c-4b1d-4b55-8a3d-3d2f6f7e9c11")


class NewHostsError(PerfVMError):
    """Hosts that cannot be added as they are described."""


@dataclass(frozen=True)
class NewHosts:
    """A number of new hosts of one shape.

    :ivar mode: None for elastic ones where the policy has units, or else dedicated
    """

    count: int
    shape: HostShape
    mode: Mode | None = None

    @classmethod
    def parse(cls, text: str) -> NewHosts:
        """Read ``10x2x24``, ``10x2x24x2`` or ``10x2x24=shared``.

        :raises NewHostsError: when the text is anything else
        """
        found = _FORM.fullmatch(text.strip())
        if found is None or found[4] not in {None, *MODES}:
            raise NewHostsError(
                f"{text!r}: expected hosts x NUMA nodes x CPU cores per node [x "
                "threads per core][=mode], such as 10x2x24 or 10x2x24x2=dedicated; "
                f"modes: {', '.join(MODES)}"
            )
        return cls(
            int(found[1]), HostShape.parse(found[2]), cast("Mode | None", found[4])
        )


def with_new_hosts(
    policy: Policy, snapshot: Snapshot, new: NewHosts, memory_gb: int | None
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return a cloud with hosts that were added, and their names.

    They are configured for the mode, and not enrolled.

    :param memory_gb: of each; None for as much as the cloud's hosts of the shape have
    :raises NewHostsError: when that is not known
    :raises HostConfigError: when the policy has no such hosts
    """
    memory_gb = memory_gb or _memory_gb(snapshot, new.shape)
    mode = new.mode or scheme_of(policy).modes[0]
    topology = from_shape(new.shape).with_memory(memory_gb)
    config = generate(HostRequest(policy, topology, mode))
    inventories = _inventories(config, _ratio(snapshot)) | _disk(snapshot)
    traits = frozenset(_traits(config))
    zones = [host.availability_zone for host in snapshot.hosts]
    zone = max(zones, key=zones.count, default="")
    hosts, providers = [], []
    for name in _names(snapshot, new):
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
    found = replace(
        snapshot,
        hosts=(*snapshot.hosts, *hosts),
        providers=(*snapshot.providers, *providers),
    )
    return found, tuple(host.host for host in hosts)


def _names(snapshot: Snapshot, new: NewHosts) -> Iterator[str]:
    taken = {name for host in snapshot.hosts for name in (host.host, host.node)}
    number = 0
    for _ in range(new.count):
        number += 1
        while (name := f"new-{new.shape}-{number}") in taken:
            number += 1
        yield name


def _memory_gb(snapshot: Snapshot, shape: HostShape) -> int:
    roots = {host.provider for host in snapshot.hosts if host.shape == shape}
    known = [p.total("MEMORY_MB") for p in snapshot.providers if p.uuid in roots]
    if not any(known):
        raise NewHostsError(
            f"no host of the cloud is a {shape}, so that the memory of new ones is not "
            "known: say --memory-gb N"
        )
    # The least of them: no promise rests on luck.
    return min(filter(None, known)) // 1024


def _disk(snapshot: Snapshot) -> dict[str, Inventory]:
    """Return as much disk as the hosts have that have least."""
    roots = {host.provider for host in snapshot.hosts}
    known = [
        p.inventories["DISK_GB"]
        for p in snapshot.providers
        if p.uuid in roots and "DISK_GB" in p.inventories
    ]
    if not known:
        return {}
    return {"DISK_GB": min(known, key=lambda found: found.capacity)}


def _ratio(snapshot: Snapshot) -> float:
    """Return how far the hosts' shared CPUs are overcommitted, where least."""
    known = [
        p.inventories[const.VCPU]
        for p in snapshot.providers
        if const.VCPU in p.inventories
    ]
    return min((found.allocation_ratio for found in known), default=_NOVA_RATIO)


def _inventories(config: HostConfig, ratio: float) -> dict[str, Inventory]:
    sets, topology = config.cpus, config.request.topology
    memory_mb = topology.memory_mb or 0
    reserved_mb = sum(share.reserved_mb for share in config.memory)
    found = {
        "MEMORY_MB": Inventory(memory_mb, memory_mb, reserved=reserved_mb),
    }
    if sets.dedicated:
        found[const.PCPU] = Inventory(len(sets.dedicated), len(sets.dedicated))
    shared = len(sets.shared | sets.either)
    if shared:
        found[const.VCPU] = Inventory(shared, shared, allocation_ratio=ratio)
    for entry in _additional(config, "inventories"):
        found |= {name: Inventory(**values) for name, values in entry.items()}
    return found


def _traits(config: HostConfig) -> Iterator[str]:
    yield from _additional(config, "traits")


def _additional(config: HostConfig, key: str) -> list[Any]:
    (provider,) = (config.provider or {"providers": [{}]})["providers"]
    found: Mapping[str, list[Any]] = provider.get(key, {})
    return found.get("additional", [])


def _cells(config: HostConfig) -> Iterator[HostCell]:
    for node in config.request.topology.nodes:
        yield HostCell(memory_mb=node.memory_mb or 0, **config.cpus.cell(node))
