# SPDX-License-Identifier: Apache-2.0
"""From a snapshot to the facts that the rules judge."""

from __future__ import annotations

from collections.abc import Mapping

from nova_perfvm import constants as const
from nova_perfvm.facts import (
    HostFacts,
    NUMACell,
    PagePool,
    RequestCell,
    RequestFacts,
    placement_request,
)
from nova_perfvm.facts.snapshot.model import ComputeHost, Snapshot
from nova_perfvm.facts.snapshot.resources import Server

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_PAGE_SIZES = {
    "small": const.PAGE_SMALL,
    "large": const.PAGE_LARGE,
    "any": const.PAGE_ANY,
}
_NO_PROPERTIES: Mapping[str, str] = {}


def host_facts(snapshot: Snapshot, host: ComputeHost) -> HostFacts:
    """Return a host as the scheduler sees it, at the time of the snapshot."""
    servers = snapshot.servers_by_host.get(host.host, ())
    here = [cell for server in servers for cell in server.cells or ()]
    tree = snapshot.trees.get(host.provider)
    cells = []
    for cell in host.cells:
        mine = [found for found in here if found.host_node == cell.id]
        pins = cell.pinned_cpus
        if pins is None:
            pins = frozenset(c for found in mine for c in found.cpu_pinning.values())
        memory_usage_mb = cell.memory_usage_mb
        if memory_usage_mb is None:
            memory_usage_mb = sum(found.memory_mb for found in mine)
        cells.append(
            NUMACell(
                id=cell.id,
                cpuset=cell.cpuset,
                pcpuset=cell.pcpuset,
                pinned_cpus=pins,
                memory_mb=cell.memory_mb,
                memory_usage_mb=memory_usage_mb,
                siblings=cell.siblings,
                mempages=tuple(
                    PagePool(pool.size_kb, pool.total, pool.used)
                    for pool in cell.mempages
                ),
            )
        )
    return HostFacts(
        host=host.host,
        nodename=host.node,
        cells=cells,
        vcpus_used=(
            sum(server.vcpus for server in servers)
            if host.vcpus_used is None
            else host.vcpus_used
        ),
        num_instances=(
            len(servers) if host.num_instances is None else host.num_instances
        ),
        labels=snapshot.labels(host.host),
        isolating=snapshot.isolating(host.host),
        traits=None if tree is None else frozenset().union(*(p.traits for p in tree)),
    )


def server_facts(snapshot: Snapshot, server: Server) -> RequestFacts:
    """Return what a server asks for, by the flavor that is embedded in it.

    Its image counts as it is today; that of a server which boots from a volume
    is not known.
    """
    image = snapshot.image_by_id.get(server.image or "")
    properties = image.properties if image else _NO_PROPERTIES
    specs = server.extra_specs
    thread_policy = _either(specs, properties, const.CPU_THREAD_POLICY)
    page_size = _page_size_kb(_either(specs, properties, const.MEM_PAGE_SIZE))
    resources, traits = placement_request.read(
        specs, placement_request.required_traits(properties)
    )
    return RequestFacts(
        flavor=server.flavor,
        class_name=specs.get(const.CLASS_KEY),
        vcpus=server.vcpus,
        memory_mb=server.memory_mb,
        cells=tuple(
            RequestCell(
                vcpus=len(cell.vcpus) - len(cell.cpu_pinning),
                pcpus=len(cell.cpu_pinning),
                memory_mb=cell.memory_mb,
                page_size_kb=page_size,
                cpu_thread_policy=thread_policy,
            )
            for cell in server.cells or ()
        ),
        emulator_threads=specs.get(const.EMULATOR_THREADS),
        multiqueue=_true(_either(specs, properties, const.VIF_MULTIQUEUE)),
        volume_backed=server.image is None,
        resources=resources,
        traits=traits,
        running_vcpus=server.vcpus if server.built else None,
    )


def _either(
    specs: Mapping[str, str], properties: Mapping[str, str], key: str
) -> str | None:
    """Return what the flavor says, or else the image, which has _ for the colon."""
    return specs.get(key) or properties.get(key.replace(":", "_"))


def _true(text: str | None) -> bool:
    # As oslo.utils reads a boolean.
    return text is not None and text.strip().lower() in _TRUE


def _page_size_kb(text: str | None) -> int | None:
    if text is None:
        return None
    if text in _PAGE_SIZES:
        return _PAGE_SIZES[text]
    digits = text.rstrip("KMGiBb")
    factor = {"M": 1024, "G": 1024 * 1024}.get(text[len(digits) : len(digits) + 1], 1)
    return int(digits) * factor if digits.isdecimal() else None
