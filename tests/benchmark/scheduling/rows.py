# SPDX-License-Identifier: Apache-2.0
"""A host's rows in the databases, as nova-compute and Placement write them."""

import datetime as dt
import json
import uuid

import os_traits
from nova import objects

from nova_perfvm import constants as const
from nova_perfvm.facts import NUMACell
from nova_perfvm.facts import children as child_providers
from nova_perfvm.placement.host_schemes import Child, cells, units
from nova_perfvm.placement.schemes import scheme_of
from tests.benchmark.scheduling import pools
from tests.benchmark.scheduling.flavors import flavor, policy

# About those that nova-compute reports of a host with libvirt, and as many.
HOST_TRAITS = {"COMPUTE_NODE", "OWNER_NOVA"} | {
    trait
    for kind in ("GRAPHICS", "IMAGE", "NET", "SOUND", "STORAGE", "VOLUME")
    for trait in os_traits.get_traits(f"COMPUTE_{kind}_")
}
_NAMESPACE = uuid.UUID("8d5b3b1e-6a0b-4f5e-9a3c-2f1d1c0b7a11")
_CPU_INFO = json.dumps(
    {
        "arch": "x86_64",
        "model": "Penryn",
        "vendor": "Intel",
        "topology": {"cells": 2, "sockets": 1, "cores": 20, "threads": 1},
        "features": [
            *("vme", "acpi", "ds", "tm", "ss", "tm2", "monitor", "ds_cpl"),
            *("xtpr", "ht", "aes", "pbe", "vmx", "est"),
        ],
    }
)
_INSTANCES = json.dumps(
    [
        *(
            [arch, kind, "hvm"]
            for arch in ("i686", "x86_64")
            for kind in ("qemu", "kvm")
        ),
        *(
            [arch, "qemu", "hvm"]
            for arch in ("aarch64", "armv7l", "mips", "mipsel", "sparc", "ppc")
        ),
    ]
)
_PCI = json.dumps(objects.PciDevicePoolList(objects=[]).obj_to_primitive())


def host_name(number):
    """Return the name of a host, which is that of its provider, too."""
    return f"compute{number:05d}"


def host_uuid(number):
    """Return the UUID of a host's compute node and provider."""
    return str(uuid.uuid5(_NAMESPACE, host_name(number)))


def child_uuid(number, suffix):
    """Return the UUID of a child provider."""
    name = child_providers.child_name(host_name(number), suffix)
    return child_providers.child_uuid(host_uuid(number), name)


def server_uuid(number, index):
    """Return the UUID of a host's server."""
    return str(uuid.uuid5(_NAMESPACE, f"{host_name(number)} {index}"))


def service(number, now):
    """Return the row of a nova-compute that is up."""
    return {
        "created_at": now,
        "updated_at": now,
        "uuid": str(uuid.uuid5(_NAMESPACE, f"service {host_name(number)}")),
        "host": host_name(number),
        "binary": "nova-compute",
        "topic": "compute",
        "report_count": 1,
        "disabled": 0,
        "last_seen_up": now,
        "forced_down": 0,
        "version": 74,
        "deleted": 0,
    }


def compute_node(pool, number, guests, now=None):
    """Return the row of a compute node."""
    flavors = [flavor("stock", name) for name in guests.flavors]
    used_mb = pools.RESERVED_MB + sum(each.memory_mb for each in flavors)
    used_gb = sum(each.root_gb for each in flavors)
    count = str(len(flavors))
    stats = {"failed_builds": "0", "uptime": " 02:55:16 up 14:14,  0 user"} | (
        {
            "num_instances": count,
            "num_vm_active": count,
            "num_task_None": count,
            "num_os_type_None": count,
            "io_workload": "0",
        }
        if flavors
        else {}
    )
    return {
        "created_at": now,
        "updated_at": now,
        "service_id": None,
        "host": host_name(number),
        "uuid": host_uuid(number),
        "vcpus": 0 if pool.cpus == "dedicated" else pool.size,
        "memory_mb": pools.MEMORY_MB,
        "local_gb": pools.DISK_GB,
        "vcpus_used": sum(each.vcpus for each in flavors),
        "memory_mb_used": used_mb,
        "local_gb_used": used_gb,
        "hypervisor_type": "QEMU",
        "hypervisor_version": 6002000,
        "hypervisor_hostname": host_name(number),
        "free_ram_mb": pools.MEMORY_MB - used_mb,
        "free_disk_gb": pools.DISK_GB - used_gb,
        "current_workload": 0,
        "running_vms": len(flavors),
        "cpu_info": _CPU_INFO,
        "disk_available_least": pools.DISK_GB - used_gb,
        "host_ip": "192.0.2.2",
        "supported_instances": _INSTANCES,
        "metrics": "[]",
        "pci_stats": _PCI,
        "stats": json.dumps(stats),
        "numa_topology": pools.topology(pool, guests),
        "ram_allocation_ratio": 1.0,
        "cpu_allocation_ratio": pools.CPU_RATIO,
        "disk_allocation_ratio": 1.0,
        "mapped": 1,
        "deleted": 0,
    }


def inventory(total, reserved=0, ratio=1.0, max_unit=None):
    """Return an inventory as Placement shows it."""
    return {
        "total": total,
        "reserved": reserved,
        "min_unit": 1,
        "max_unit": total if max_unit is None else max_unit,
        "step_size": 1,
        "allocation_ratio": ratio,
    }


def inventories(pool, scheme):
    """Return a host's inventories by resource class, those of children apart."""
    found = {
        "MEMORY_MB": inventory(pools.MEMORY_MB, pools.RESERVED_MB),
        "DISK_GB": inventory(pools.DISK_GB),
    }
    if pool.cpus == "dedicated":
        found["PCPU"] = inventory(pool.size)
    else:
        found["VCPU"] = inventory(pool.size, ratio=pools.CPU_RATIO)
    if scheme == "slots" and pool.offers_slots:
        found[const.RC_SLOT] = inventory(pools.HIGH_PER_HOST)
    return found


def children(scheme, number):
    """Return {UUID: Child} of a host."""
    if scheme == "cells":
        return dict(_cells(number))
    if not scheme.startswith("units"):
        return {}
    made = units.children_named(policy(scheme), host_name(number), pools.HIGH_PER_HOST)
    return {
        child_uuid(number, suffix): child
        for suffix, child in zip(const.CHILD_LETTERS, made, strict=False)
    }


def _cells(number):
    """Yield the NUMA nodes of a host: 2 x 20 dedicated CPUs."""
    for node in range(2):
        cpus = frozenset(range(20))
        cell = NUMACell(node, frozenset(), cpus, frozenset(), pools.MEMORY_MB // 2, 0)
        suffix = f"{const.CELL_SUFFIX}{node}"
        yield (
            child_uuid(number, suffix),
            Child(
                child_providers.child_name(host_name(number), suffix),
                const.TRAIT_CELLS,
                cells.inventories_of(policy("cells"), cell),
            ),
        )


def traits_of(pool, scheme):
    """Return the traits of a host's provider."""
    if own := scheme_of(policy(scheme)).enrolled_trait(policy(scheme)):
        return {*HOST_TRAITS, own}
    if scheme == "slots" and pool.offers_slots:
        return {*HOST_TRAITS, const.TRAIT_HIGH_PERFORMANCE}
    return HOST_TRAITS


def allocations(pool, scheme, number, guests):
    """Yield (consumer, {provider: {resource class: amount}}) of each server."""
    host = host_uuid(number)
    below = list(children(scheme, number))
    for index, name in enumerate(guests.flavors):
        wanted = flavor("stock", name)
        cpus = "PCPU" if pool.cpus == "dedicated" else "VCPU"
        taken = {cpus: wanted.vcpus, "MEMORY_MB": wanted.memory_mb}
        if wanted.root_gb:
            taken["DISK_GB"] = wanted.root_gb
        claimed = {host: taken}
        pinned = index < len(guests.high)
        if scheme == "slots" and pinned and pool.offers_slots:
            taken[const.RC_SLOT] = 1
        if scheme == "cells":
            cpus = {const.RC_CELL_CPU: wanted.vcpus}
            claimed[below[guests.nodes[index]]] = cpus | {
                const.RC_CELL_MEMORY: wanted.memory_mb
            }
        elif below and pinned:
            claimed[below[index]] = {const.RC_UNIT: const.UNITS_PER_CHILD}
        elif below:
            claimed |= {child: {const.RC_UNIT: 1} for child in below}
        yield server_uuid(number, index), claimed


def now():
    """Return the time that databases are told, in UTC."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None, microsecond=0)
