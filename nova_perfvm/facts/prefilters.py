# SPDX-License-Identifier: Apache-2.0
"""Traits and resources that Nova adds to a request for keys of flavor and image.

``ResourceRequest`` of nova.scheduler.utils adds some to those that the flavor names.
The prefilters of nova.scheduler.request_filter require others of the host's own
provider.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import os_traits
from oslo_utils import strutils

from nova_perfvm.facts.image_properties import canonical

# The options of an oslo.config file: {(section, option): value}.
Options = Mapping[tuple[str, str], str]

_SECURITY: Final = "COMPUTE_SECURITY_"
_ENCRYPTION: Final = "COMPUTE_EPHEMERAL_ENCRYPTION"
# {image property: prefix of the traits that [scheduler]image_metadata_prefilter makes
# of its values}
_OF_IMAGES: Final = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    # os-traits lacks the traits of this property; Nova then asks for no trait at all.
    "hw_viommu_model": "COMPUTE_VIOMMU",
}
# {memory encryption model: trait}.  Nova 31 asks for MEM_ENCRYPTION_CONTEXT without a
# trait; the same hosts have both.
MEMORY: Final = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
_ADDRESSES: Final = {
    "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
}


@dataclass(frozen=True)
class Keys:
    """The keys of a flavor and an image.

    :ivar specs: the flavor's extra specs
    :ivar properties: the image's properties, by Nova's names
    :ivar image: ID of the image, also of one that is written to a volume; empty without
        an image, and if it is unknown
    :ivar disk_format: the image's disk format; empty if unknown
    :ivar volume_backed: whether the root disk is a volume
    :ivar hints: scheduler hints; None if unknown, as for an existing server
    """

    specs: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    disk_format: str = ""
    volume_backed: bool = False
    hints: Mapping[str, Sequence[str]] | None = field(default_factory=dict)

    def either(self, key: str) -> str | None:
        """Return the flavor's value of a key, else the image's (_ for :), or None."""
        return self.specs.get(key) or self.properties.get(key.replace(":", "_"))

    def on(self, key: str) -> bool:
        """Return whether flavor or image set a boolean key to true."""
        names = self.specs.get(key), self.properties.get(key.replace(":", "_"))
        return any(map(strutils.bool_from_string, names))


def traits(keys: Keys) -> Iterator[str]:
    """Yield the traits that Nova adds to the unsuffixed group of a request."""
    if keys.either("os:secure_boot") == "required":
        yield f"{_SECURITY}UEFI_SECURE_BOOT"
    if mode := _ADDRESSES.get(keys.either("hw:maxphysaddr_mode") or ""):
        yield mode
    image = keys.properties
    if image.get("hw_firmware_type") == "uefi" and strutils.bool_from_string(
        image.get("hw_firmware_stateless")
    ):
        yield f"{_SECURITY}STATELESS_FIRMWARE"
    if version := keys.either("hw:tpm_version"):
        crb = keys.either("hw:tpm_model") == "tpm-crb"
        yield f"{_SECURITY}TPM_{'CRB' if crb else 'TIS'}"
        yield f"{_SECURITY}TPM_{'2_0' if version == '2.0' else '1_2'}"
    if keys.on("hw:mem_encryption"):
        model = keys.either("hw:mem_encryption_model") or "amd-sev"
        yield MEMORY.get(model, MEMORY["amd-sev"])
    if keys.either("hw:pci_numa_affinity_policy") == "socket":
        yield "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"


def resources(keys: Keys) -> dict[str, int]:
    """Return Nova's {resource class: amount} for encrypted and persistent memory."""
    found = {"MEM_ENCRYPTION_CONTEXT": 1} if keys.on("hw:mem_encryption") else {}
    for label in memory_labels(keys.specs):
        name = "CUSTOM_PMEM_NAMESPACE_" + "".join(
            c if c.isalnum() else "_" for c in label.upper()
        )
        found[name] = found.get(name, 0) + 1
    return found


def memory_labels(specs: Mapping[str, str]) -> list[str]:
    """Return the labels of the persistent memory that a flavor asks for."""
    return [s.strip() for s in specs.get("hw:pmem", "").split(",") if s.strip()]


def _image_type(keys: Keys, options: Options) -> Iterator[str]:
    name = f"COMPUTE_IMAGE_TYPE_{keys.disk_format.upper()}"
    by_type = is_on(options, "query_placement_for_image_type_support")
    # For a root disk on a volume Nova requires no trait (RequestSpec.is_bfv).
    if by_type and keys.image and not keys.volume_backed:
        yield from _known([name])


def _image_metadata(keys: Keys, options: Options) -> Iterator[str]:
    """Yield the traits of the image's properties; none if os-traits lacks one."""
    if is_on(options, "image_metadata_prefilter"):
        yield from _known(
            f"{prefix}_{canonical(key, keys.properties[key]).replace('-', '_').upper()}"
            for key, prefix in _OF_IMAGES.items()
            if key in keys.properties
        )


def _encryption(keys: Keys, _options: Options) -> Iterator[str]:
    if keys.on("hw:ephemeral_encryption"):
        yield _ENCRYPTION
        if kind := keys.either("hw:ephemeral_encryption_format"):
            yield f"{_ENCRYPTION}_{kind.upper()}"


def _tpm_secret(keys: Keys, _options: Options) -> Iterator[str]:
    if keys.either("hw:tpm_version"):
        kind = keys.specs.get("hw:tpm_secret_security", "user")
        yield f"{_SECURITY}TPM_SECRET_SECURITY_{kind.upper()}"


def _known(names: Iterable[str]) -> list[str]:
    """Return `names` if os-traits has all of them; else an empty list."""
    found = list(names)
    return found if all(hasattr(os_traits, name) for name in found) else []


def is_on(options: Options, name: str) -> bool:
    """Return whether nova-scheduler's file sets an option of [scheduler] to true."""
    return strutils.bool_from_string(options.get(("scheduler", name), ""))


_Prefilter = Callable[[Keys, Options], Iterable[str]]
# The prefilters that ask traits of the host's own provider, by the names of Nova's
# functions.
PREFILTERS: Final[dict[str, _Prefilter]] = {
    "require_image_type_support": _image_type,
    "transform_image_metadata": _image_metadata,
    "accelerators_filter": lambda keys, _: (
        ["COMPUTE_ACCELERATORS"] * bool(keys.specs.get("accel:device_profile"))
    ),
    "packed_virtqueue_filter": lambda keys, _: (
        ["COMPUTE_NET_VIRTIO_PACKED"] * keys.on("hw:virtio_packed_ring")
    ),
    "ephemeral_encryption_filter": _encryption,
    "virtio_sound_filter": lambda keys, _: (
        ["COMPUTE_SOUND_MODEL_VIRTIO"] * (keys.either("hw:sound_model") == "virtio")
    ),
    "tpm_secret_security_filter": _tpm_secret,
}
# {prefilter that Nova 31 lacks: prefix of its traits}
SINCE: Final = {
    "virtio_sound_filter": "COMPUTE_SOUND_MODEL_",
    "tpm_secret_security_filter": f"{_SECURITY}TPM_SECRET_SECURITY_",
}


def unjudged(keys: Keys, options: Options) -> Iterator[str]:
    """Yield names of enabled prefilters that add unknown traits or aggregates."""
    if is_on(options, "query_placement_for_routed_network_aggregates"):
        yield "routed_networks_filter"
    by_type = is_on(options, "query_placement_for_image_type_support")
    of_image = keys.image and not keys.volume_backed
    if by_type and of_image and not keys.disk_format:
        yield "require_image_type_support"


def root_traits(keys: Keys, options: Options) -> frozenset[str]:
    """Return the traits that prefilters require of the host's own provider."""
    found = (prefilter(keys, options) for prefilter in PREFILTERS.values())
    return frozenset().union(*found)
