# SPDX-License-Identifier: Apache-2.0
"""Filters that compare a request with a host's reported facts, or with nova.conf."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from oslo_utils import versionutils

from nova_perfvm import constants as const
from nova_perfvm.diagnose.nova_filters.case import FilterCase, differs, not_judged
from nova_perfvm.diagnose.nova_filters.operators import match
from nova_perfvm.facts import Reason
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.image_properties import canonical
from nova_perfvm.placement.settings import is_true

# Attributes of HostState, which a bare extra spec may name.
_ATTRIBUTES: Final = re.compile(
    "aggregates|allocation_candidates|cell_uuid|cpu_info|failed_builds|host|host_ip|"
    "disk_mb_used|free_(disk|ram)_mb|hypervisor_(hostname|type|version)|instances|"
    "(cpu|disk|ram)_allocation_ratio|limits|metrics|nodename|num_instances|num_io_ops|"
    "numa_topology|pci_stats|service|stats|supported_instances|updated|uuid|"
    "total_usable_disk_gb|total_usable_ram_mb|vcpus_total|vcpus_used"
)
# Statistics that nova-compute counts (nova.compute.stats.Stats).
_STATS: Final = re.compile(r"num_\w+|io_workload|failed_builds")
_SCOPE: Final = "capabilities"
_CAPABILITIES: Final = "ComputeCapabilitiesFilter"
_IMAGE: Final = "ImagePropertiesFilter"


def service(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host's nova-compute is disabled or down."""
    host = case.view.compute
    if not host.enabled:
        yield Reason(const.SERVICE_DISABLED, {"why": host.disabled_reason or ""})
    if not host.up:
        yield Reason(const.SERVICE_DOWN, {"forced": host.forced_down})


def capabilities(case: FilterCase) -> Iterator[Reason]:
    """Yield the extra specs that a host's capabilities do not satisfy."""
    specs = dict(case.request.keys.specs)
    if bits := specs.pop("hw:maxphysaddr_bits", ""):
        specs["capabilities:cpu_info:maxphysaddr:bits"] = f">= {bits}"
    for key, wanted in specs.items():
        scope, *path = key.split(":")
        if not path and _on_host(case.view, scope):
            scope, path = _SCOPE, [scope]
        if scope != _SCOPE or not path:
            continue
        try:
            found = _capability(case.view, path)
        except LookupError:
            yield not_judged(_CAPABILITIES, key)
            continue
        if found is None or not match(str(found), wanted):
            yield differs(_CAPABILITIES, key, wanted, found)


def _on_host(view: HostView, name: str) -> bool:
    """Return whether a host's HostState has this attribute or statistic.

    Where the statistics are unknown, the host may have each that nova-compute counts.
    """
    stats = _stats(view)
    has = _STATS.fullmatch(name) if stats is None else name in stats
    return bool(has or _ATTRIBUTES.fullmatch(name))


def _stats(view: HostView) -> Mapping[str, Any] | None:
    """Return the statistics that nova-compute reports; None if unknown."""
    found = view.compute.capabilities.get("stats")
    return None if found is None else json.loads(found)


def _told(view: HostView) -> Mapping[str, Any]:
    """Return the known attributes of a host's HostState."""
    compute = view.compute
    found: dict[str, Any] = {
        "host": compute.host,
        "nodename": compute.node,
        "hypervisor_hostname": compute.node,
        "num_instances": view.facts.num_instances,
        "uuid": compute.provider,
        "vcpus_total": compute.vcpus,
        "vcpus_used": view.facts.vcpus_used,
    }
    if compute.cells_told:
        # Only libvirt reports NUMA nodes, and libvirt reports the type QEMU for KVM,
        # too.
        found["hypervisor_type"] = "QEMU"
    return {**found, **compute.capabilities}


def _capability(view: HostView, path: Sequence[str]) -> Any:
    """Return one capability, looked up as ComputeCapabilitiesFilter does.

    :raises LookupError: when no source tells the capability
    """
    told = _told(view)
    first, *others = path
    found = told.get(first)
    if found is None:
        stats = _stats(view)
        if _ATTRIBUTES.fullmatch(first) or (stats is None and _STATS.fullmatch(first)):
            raise LookupError(first)
        found = (stats or {}).get(first)
    for name in others:
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError:
                return None
        found = found.get(name) if isinstance(found, dict) else None
    return found


def image_properties(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host cannot run an image's architecture, type and mode."""
    properties = case.request.keys.properties
    default = case.option("image_properties_default_architecture")
    names = {
        "hw_architecture": properties.get("hw_architecture", default),
        "img_hv_type": properties.get("img_hv_type", ""),
        "hw_vm_mode": properties.get("hw_vm_mode", ""),
    }
    asked = {k: canonical(k, v) for k, v in names.items() if v}
    if not asked:
        return
    told = case.view.compute.capabilities
    kinds = told.get("supported_instances")
    if kinds is None:
        # Every libvirt host runs VMs of its own architecture by QEMU.
        own = f"HW_ARCH_{asked.get('hw_architecture', 'x86_64').upper()}"
        has = case.view.tree and own in case.view.root.traits
        others = {v for k, v in asked.items() if k != "hw_architecture"}
        if not has or not others <= {"qemu", "hvm"}:
            yield not_judged(_IMAGE, ", ".join(asked))
    elif not any({*asked.values()} <= {*kind} for kind in json.loads(kinds)):
        found = ", ".join(" ".join(kind) for kind in json.loads(kinds)) or None
        wanted = " ".join(asked.values())
        yield differs(_IMAGE, ", ".join(asked), wanted, found)
    yield from _image_version(properties, told)


def _image_version(
    properties: Mapping[str, str], told: Mapping[str, str]
) -> Iterator[Reason]:
    """Yield a reason if a hypervisor's version is not the one that an image wants."""
    what = "img_hv_requested_version"
    wanted, version = properties.get(what), told.get("hypervisor_version")
    if wanted and version is None:
        yield not_judged(_IMAGE, what)
    elif wanted and version:
        found = versionutils.convert_version_to_str(int(version))
        if not versionutils.VersionPredicate(wanted).satisfied_by(found):
            yield differs(_IMAGE, what, wanted, found)
    if properties.get("hw_maxphysaddr_bits"):
        yield not_judged(_IMAGE, "hw_maxphysaddr_bits")


def isolated_hosts(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if nova.conf isolates the image, or the host, from the other."""
    keys = case.request.keys
    if keys.hints is None and keys.volume_backed and case.names("isolated_images"):
        # Nova has stored the ID of the image that was written to the server's volume.
        yield not_judged("IsolatedHostsFilter", "the image of the server's volume")
        return
    mine = keys.image in case.names("isolated_images")
    here = case.view.host in case.names("isolated_hosts")
    strict = case.option("restrict_isolated_hosts_to_isolated_images", "true")
    if (mine and not here) or (here and not mine and is_true(strict)):
        wanted = "isolated_hosts" if mine else "isolated_images"
        what = "host of an isolated image" if mine else "image on an isolated host"
        yield differs("IsolatedHostsFilter", what, f"one of {wanted}", "another")


def num_instances(case: FilterCase, most: int | None = None) -> Iterator[Reason]:
    """Yield a reason if a host has as many servers as nova.conf or an aggregate allows.

    :param most: the aggregates' limit; None for nova.conf's
    """
    limit = case.number("max_instances_per_host", 50) if most is None else most
    if (found := case.view.facts.num_instances) >= limit:
        what, wanted = "max_instances_per_host", f"fewer than {limit}"
        yield differs("NumInstancesFilter", what, wanted, found)


def io_ops(case: FilterCase, most: int | None = None) -> Iterator[Reason]:
    """Yield a reason if a host does as much I/O as nova.conf or an aggregate allows.

    :param most: the aggregates' limit; None for nova.conf's
    """
    limit = case.number("max_io_ops_per_host", 8) if most is None else most
    try:
        found = int(_capability(case.view, ["io_workload"]) or 0)
    except LookupError:
        yield not_judged("IoOpsFilter", "io_workload of the host")
        return
    if found >= limit:
        what, wanted = "max_io_ops_per_host", f"fewer than {limit}"
        yield differs("IoOpsFilter", what, wanted, found)


def same_host(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host has none of the servers in the hint same_host."""
    yield from _hinted(case, "SameHostFilter", "same_host", together=True)


def different_host(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host has one of the servers in the hint different_host."""
    yield from _hinted(case, "DifferentHostFilter", "different_host", together=False)


def _hinted(
    case: FilterCase, name: str, hint: str, *, together: bool
) -> Iterator[Reason]:
    hints = case.request.keys.hints
    if hints is None:
        yield not_judged(name, "hints")
    elif servers := hints.get(hint):
        here = sorted({*servers} & {server.id for server in case.view.servers})
        if bool(here) != together:
            shown = ", ".join(here) or None
            yield differs(name, hint, ", ".join(servers), shown)
