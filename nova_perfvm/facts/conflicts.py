# SPDX-License-Identifier: Apache-2.0
"""Flavors that nova-api refuses with an image, because their keys contradict.

nova.compute.api (``_validate_flavor_image``) calls :mod:`nova.virt.hardware` for them:
``numa_get_constraints``, ``get_cpu_topology_constraints`` and others.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from oslo_utils import strutils

from nova_perfvm import constants as const
from nova_perfvm.facts.placement_request import NUMERIC_SUFFIX, whole_number
from nova_perfvm.facts.snapshot import Flavor
from nova_perfvm.policy.guest import realtime_vcpus

# Nova compares the beginnings of keys.
_NAMED_CPUS: Final = re.compile(f"resources{NUMERIC_SUFFIX}:([PV]CPU)")
_LOCKED: Final = "hw:locked_memory"
_SWITCHES: Final = (
    const.VIF_MULTIQUEUE,
    "hw:pmu",
    "hw:virtio_packed_ring",
    "hw:ephemeral_encryption",
    "hw:mem_encryption",
)
# Extra specs whose values have to be equal if flavor and image both set them.
_SAME: Final = (
    "hw:ephemeral_encryption_format",
    "hw:maxphysaddr_mode",
    "hw:sound_model",
    "hw:tpm_model",
    "hw:tpm_version",
    "os:secure_boot",
)
HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"
_SMT_TRAIT: Final = f"trait:{HYPERTHREADING}"
_SMT_KEY: Final = re.compile(f"trait{NUMERIC_SUFFIX}:{HYPERTHREADING}")
_REALTIME: Final = "hw:cpu_realtime"
_MASK: Final = "hw:cpu_realtime_mask"
# In Nova's order.
TOPOLOGY_PARTS: Final = ("sockets", "cores", "threads")
LIMITS_OF_CPUS: Final = frozenset(f"hw:cpu_max_{part}" for part in TOPOLOGY_PARTS)
# Properties that an image needs for VMs with encrypted memory, by their extra specs.
NEEDED: Final = {
    "hw:firmware_type": "hw_firmware_type=uefi",
    "hw:machine_type": "hw_machine_type=q35",
    "hw:firmware_stateless": "hw_firmware_stateless=true",
    "hw:video_model": "hw_video_model=none",
}
# The name of Nova's exception, and the extra specs in conflict.
Conflict = tuple[str, tuple[str, ...]]
# Returns the flavor's and the image's value of an extra spec; empty if not set.
_Pair = Callable[[str], tuple[str, str]]


def conflicts(flavor: Flavor, properties: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield the conflicts between the keys of a flavor and an image, or in either.

    :param properties: properties of the image
    """
    specs = flavor.extra_specs

    def pair(key: str) -> tuple[str, str]:
        return specs.get(key, ""), properties.get(key.replace(":", "_"), "")

    if properties.get("img_config_drive", "optional") not in {"optional", "mandatory"}:
        yield "InvalidImageConfigDrive", ("img_config_drive",)
    yield from _of_cpus(flavor, properties, pair)
    if all(pair(const.NUMA_NODES)):
        yield "ImageNUMATopologyForbidden", (const.NUMA_NODES,)
    yield from _of_memory(pair(const.MEM_PAGE_SIZE), pair(_LOCKED))
    # Nova ignores multiqueue for a VM of one vCPU.
    for key in _SWITCHES if flavor.vcpus > 1 else _SWITCHES[1:]:
        if _differ(pair(key)):
            yield "FlavorImageConflict", (key,)
    for key in _SAME:
        if len({text for text in pair(key) if text}) > 1:
            yield "FlavorImageConflict", (key,)
    yield from _of_topology(pair)
    if any(map(strutils.bool_from_string, pair("hw:mem_encryption"))):
        yield from _of_encryption(pair("hw:mem_encryption_model"), properties)


def _of_cpus(
    flavor: Flavor, properties: Mapping[str, str], pair: _Pair
) -> Iterator[Conflict]:
    """Yield the conflicts of CPU policy, amounts, thread policies and real time."""
    specs = flavor.extra_specs
    policies = pair(const.CPU_POLICY)
    owned, shared = named_cpus(specs)
    pinned = "dedicated" in policies or owned > 0
    extra = specs.get(const.EMULATOR_THREADS) == "isolate"
    if policies[0] == "shared" and policies[1] not in {"", "shared"}:
        yield "ImageCPUPinningForbidden", (const.CPU_POLICY,)
    short = owned and (shared or owned != flavor.vcpus + extra)
    if short or ((owned or shared) and any(policies)):
        named = filter(_NAMED_CPUS.match, specs)
        yield "InvalidRequest", (const.CPU_POLICY, *named)
    if extra and not pinned:
        keys = const.EMULATOR_THREADS, const.CPU_POLICY
        yield "BadRequirementEmulatorThreadsPolicy", keys
    smt = _smt_key(specs) if hyperthreading(specs, properties) else ""
    yield from _of_threads(pair(const.CPU_THREAD_POLICY), smt, pinned=pinned)
    if strutils.bool_from_string(specs.get(_REALTIME)):
        if not pinned:
            yield "RealtimeConfigurationInvalid", (_REALTIME, const.CPU_POLICY)
        # The image's mask has precedence over the flavor's.
        if not _realtime_fits(flavor, pair(_MASK)[1] or pair(_MASK)[0]):
            yield "RealtimeMaskNotFoundOrInvalid", (_REALTIME, _MASK)


def named_cpus(specs: Mapping[str, str]) -> tuple[int, int]:
    """Return the amounts of PCPU and VCPU that extra specs name.

    Only these pin, or refuse, vCPUs: ``_get_vcpu_pcpu_resources`` of nova.virt.hardware
    skips other suffixes.
    """
    found = {"PCPU": 0, "VCPU": 0}
    for key, text in specs.items():
        if match := _NAMED_CPUS.match(key):
            found[match[2]] += whole_number(text) or 0
    return found["PCPU"], found["VCPU"]


def _of_threads(
    threads: tuple[str, str], smt: str, *, pinned: bool
) -> Iterator[Conflict]:
    """Yield the conflicts of thread policies, hyperthreading trait and CPU policy.

    :param smt: extra spec or image property with the trait; empty without
    """
    if threads[0] not in {"", "prefer"} and threads[1] not in {"", threads[0]}:
        yield "ImageCPUThreadPolicyForbidden", (const.CPU_THREAD_POLICY,)
    if any(threads) and smt:
        yield "InvalidRequest", (const.CPU_THREAD_POLICY, smt)
    if (any(threads) or smt) and not pinned:
        keys = const.CPU_THREAD_POLICY, smt or _SMT_TRAIT, const.CPU_POLICY
        yield "CPUThreadPolicyConfigurationInvalid", keys


def _realtime_fits(flavor: Flavor, mask: str) -> bool:
    """Return whether a mask names real-time vCPUs and leaves some to the emulator."""
    found = realtime_vcpus(mask, flavor.vcpus)
    elsewhere = const.EMULATOR_THREADS in flavor.extra_specs
    return bool(found) and (len(found or ()) < flavor.vcpus or elsewhere)


def _of_encryption(
    models: tuple[str, str], properties: Mapping[str, str]
) -> Iterator[Conflict]:
    """Yield the conflicts of models, and the properties that the image lacks."""
    model = "hw:mem_encryption_model"
    if all(models) and models[0] != models[1]:
        yield "FlavorImageConflict", (model,)
    if properties.get("hw_firmware_type") != "uefi":
        yield "FlavorImageConflict", ("hw:mem_encryption", "hw:firmware_type")
    if "q35" not in properties.get("hw_machine_type", "q35"):
        yield "InvalidMachineType", ("hw:mem_encryption", "hw:machine_type")
    stateless = strutils.bool_from_string(properties.get("hw_firmware_stateless"))
    # Nova takes the image's model first.
    chosen = models[1] or models[0]
    if chosen in {"amd-sev-snp", "intel-tdx"} and not stateless:
        yield "StatelessFirmwareRequired", (model, "hw:firmware_stateless")
    if chosen == "intel-tdx" and properties.get("hw_video_model") != "none":
        yield "InvalidVideoMode", (model, "hw:video_model")


def hyperthreading(
    specs: Mapping[str, str], properties: Mapping[str, str]
) -> str | None:
    """Return the thread policy that the hyperthreading trait implies, or None."""
    policies = {"required": "require", "forbidden": "isolate"}
    asked = specs.get(_smt_key(specs)) or properties.get(_SMT_TRAIT, "")
    return policies.get(asked)


def _smt_key(specs: Mapping[str, str]) -> str:
    return next(filter(_SMT_KEY.match, specs), _SMT_TRAIT)


def _of_topology(pair: _Pair) -> Iterator[Conflict]:
    """Yield an image's serial ports, CPU limits and CPU topology beyond a limit."""
    ports, more = (whole_number(text) or 0 for text in pair("hw:serial_port_count"))
    if ports and more > ports:
        yield "ImageSerialPortNumberExceedFlavorValue", ("hw:serial_port_count",)
    for part in TOPOLOGY_PARTS:
        most, own = f"hw:cpu_max_{part}", f"hw:cpu_{part}"
        flavor_most, image_most = (whole_number(text) or 0 for text in pair(most))
        if flavor_most and image_most > flavor_most:
            yield "ImageVCPULimitsRangeExceeded", (most,)
        # The image's limit replaces the flavor's.
        limit = image_most or flavor_most
        if limit and (whole_number(pair(own)[1]) or 0) > limit:
            yield "ImageVCPUTopologyRangeExceeded", (own, most)


def _of_memory(pages: tuple[str, str], locked: tuple[str, str]) -> Iterator[Conflict]:
    """Yield the conflicts of page size and locked memory, which needs a page size."""
    if pages[1] and pages[0] not in {"any", "large"}:
        yield "MemoryPageSizeForbidden", (const.MEM_PAGE_SIZE,)
    if _differ(locked):
        yield "FlavorImageLockedMemoryConflict", (_LOCKED,)
    elif any(map(strutils.bool_from_string, locked)) and not any(pages):
        yield "LockMemoryForbidden", (_LOCKED, const.MEM_PAGE_SIZE)


def _differ(said: tuple[str, str]) -> bool:
    """Return whether flavor and image set a boolean to different values."""
    return len({strutils.bool_from_string(text) for text in said if text}) > 1
