# SPDX-License-Identifier: Apache-2.0
"""Image properties as Nova has them: ``ImageMetaProps`` of nova.objects.image_meta."""

import re
from collections.abc import Mapping
from typing import Final

from oslo_utils import strutils

# Names of properties by the type of their value.  Nova drops all other properties; it
# makes lists of hw_numa_cpus, hw_numa_mem, img_mappings, img_block_device_mapping and
# traits_required.
_BOOLEANS: Final = re.compile(
    "hw_(boot_menu|ephemeral_encryption|firmware_stateless|ipxe_boot|locked_memory|"
    "mem_encryption|pmu|qemu_guest_agent|time_hpet|vif_multiqueue_enabled|"
    "virtio_packed_ring)|img_(bdm_v2|bittorrent|cache_in_nova|hide_hypervisor_id|"
    "linked_clone|use_agent)|os_(require_quiesce|skip_agent_inject_files_at_boot|"
    "skip_agent_inject_ssh)"
)
_INTEGERS: Final = re.compile(
    "hw_(cpu_cores|cpu_max_cores|cpu_max_sockets|cpu_max_threads|cpu_sockets|"
    "cpu_threads|device_id|maxphysaddr_bits|numa_nodes|redirected_usb_ports|"
    "serial_port_count|video_ram)|img_(compression_level|version)"
)
_TEXTS: Final = re.compile(
    "hw_(auto_disk_config|cdrom_bus|cpu_policy|cpu_realtime_mask|cpu_thread_policy|"
    "disk_bus|disk_type|ephemeral_encryption_format|"
    "ephemeral_encryption_secret_uuid|firmware_type|floppy_bus|input_bus|"
    "machine_type|maxphysaddr_mode|mem_encryption_model|mem_page_size|"
    "pci_numa_affinity_policy|pointer_model|rescue_bus|rescue_device|rng_model|"
    "sound_model|tpm_model|tpm_version|usb_model|video_model|viommu_model|"
    "watchdog_action)|img_(config_drive|hv_requested_version|owner_id|"
    "root_device_name|signature|signature_certificate_uuid|signature_hash_method|"
    "signature_key_type)|os_(admin_user|command_line|distro|secure_boot)"
)
_ARCHITECTURES: Final = {
    **dict.fromkeys(("i386", "i486", "i586", "x86_32", "x86_32p"), "i686"),
    "amd64": "x86_64",
}
# {property whose value Nova puts in lower case: {synonym: value that replaces it}}
_SYNONYMS: Final[Mapping[str, Mapping[str, str]]] = {
    "hw_architecture": _ARCHITECTURES,
    "hw_emulation_architecture": _ARCHITECTURES,
    "hw_scsi_model": {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"},
    "hw_vif_model": {
        "virtuale1000": "e1000",
        "virtuale1000e": "e1000e",
        "virtualpcnet32": "pcnet",
        "virtualsriovethernetcard": "sriov",
        "virtualvmxnet": "vmxnet",
        "virtualvmxnet3": "vmxnet3",
    },
    "hw_vm_mode": {"pv": "xen", "hv": "hvm", "baremetal": "hvm"},
    "img_hv_type": {"xapi": "xen"},
    "os_type": {},
}
# {Glance's name of an image property: Nova's name}; those of lists aside
LEGACY: Final = {
    "architecture": "hw_architecture",
    "owner_id": "img_owner_id",
    "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version",
    "vmware_ostype": "os_distro",
    "auto_disk_config": "hw_auto_disk_config",
    "ipxe_boot": "hw_ipxe_boot",
    "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level",
    "vmware_linked_clone": "img_linked_clone",
    "xenapi_use_agent": "img_use_agent",
    "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
    "cache_in_nova": "img_cache_in_nova",
    "vm_mode": "hw_vm_mode",
    "bittorrent": "img_bittorrent",
    "bdm_v2": "img_bdm_v2",
    "root_device_name": "img_root_device_name",
    "hypervisor_version_requires": "img_hv_requested_version",
    "hypervisor_type": "img_hv_type",
}


def novas(properties: Mapping[str, str]) -> dict[str, str]:
    """Return an image's properties under Nova's names."""
    found = {LEGACY[k]: v for k, v in properties.items() if k in LEGACY}
    adapter = properties.get("vmware_adaptertype")
    if adapter == "ide":
        found["hw_disk_bus"] = adapter
    elif adapter:
        found |= {"hw_disk_bus": "scsi", "hw_scsi_model": adapter}
    return found | {k: v for k, v in properties.items() if k not in LEGACY}


def typed(name: str, text: str) -> bool | int | str | None:
    """Return the value that Nova makes of an image property's text.

    :param name: Nova's name of the property
    :returns: None for properties that Nova drops or makes lists of, and for a number
        that is none, with which nova-api refuses the image
    """
    if _BOOLEANS.fullmatch(name):
        return strutils.bool_from_string(text)
    if _INTEGERS.fullmatch(name):
        try:
            return int(text)
        except ValueError:
            return None
    known = name in _SYNONYMS or _TEXTS.fullmatch(name)
    return canonical(name, text) if known else None


def canonical(name: str, text: str) -> str:
    """Return a property's text as Nova writes it: without capitals and synonyms."""
    if name not in _SYNONYMS:
        return text
    return _SYNONYMS[name].get(text.lower(), text.lower())
