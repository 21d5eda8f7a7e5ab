# SPDX-License-Identifier: Apache-2.0
"""Image properties as Nova has them: ``ImageMetaProps`` of nova.objects.image_meta."""

import functools
from collections.abc import Mapping
from typing import Final

from oslo_utils import strutils

from nova_perfvm.policy import nova_keys

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


@functools.cache
def legacy() -> Mapping[str, str]:
    """Return {Glance's name of an image property: Nova's}, those of lists aside."""
    found = nova_keys.table()["image_properties"].items()
    return {takes["legacy"]: name for name, takes in found if "legacy" in takes}


def novas(properties: Mapping[str, str]) -> dict[str, str]:
    """Return an image's properties under Nova's names."""
    names = legacy()
    found = {names[k]: v for k, v in properties.items() if k in names}
    adapter = properties.get("vmware_adaptertype")
    if adapter == "ide":
        found["hw_disk_bus"] = adapter
    elif adapter:
        found |= {"hw_disk_bus": "scsi", "hw_scsi_model": adapter}
    return found | {k: v for k, v in properties.items() if k not in names}


def typed(name: str, text: str) -> bool | int | str | None:
    """Return the value that Nova makes of an image property's text.

    :param name: Nova's name of the property
    :returns: None for properties that Nova drops or makes lists of, and for a number
        that is none, with which nova-api refuses the image
    """
    takes = nova_keys.table()["image_properties"].get(name)
    if takes is None:
        return None
    if takes["type"] == "bool":
        return strutils.bool_from_string(text)
    if takes["type"] == "int":
        try:
            return int(text)
        except ValueError:
            return None
    return canonical(name, text)


def canonical(name: str, text: str) -> str:
    """Return a property's text as Nova writes it: without capitals and synonyms."""
    if name not in _SYNONYMS:
        return text
    return _SYNONYMS[name].get(text.lower(), text.lower())
