# SPDX-License-Identifier: Apache-2.0
"""List Nova's keys that classes write, and refuse others in ``extra_specs``.

A line of :data:`WRITTEN` makes an extra spec of a key of the class: the generator
writes it, ``extra_specs`` and ``image_properties`` are refused it, ``flavor sync``
removes it where the class does not declare it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from nova_perfvm import constants as const
from nova_perfvm.documents.keys import Expected, matching

_MOST: Final = 255
# nova-api's schema of extra specs (nova.api.validation.parameter_types); Glance takes
# more characters, and Nova reads no such properties.
_Key = Annotated[
    str,
    matching(r"[A-Za-z0-9_.:-]{1,255}", "a key of Nova, such as hw:watchdog_action"),
]
_Value = Annotated[
    str,
    Expected(
        f'a text of 1 to {_MOST} printable characters, in quotes, such as "true"',
        lambda text: 0 < len(text) <= _MOST and text.isprintable(),
    ),
]
NovaKeys = Mapping[_Key, _Value]

# Extra specs, and the key of the class that each is made of.
WRITTEN: Final[Mapping[str, str]] = {
    const.CPU_POLICY: "cpu_policy",
    const.CPU_THREAD_POLICY: "cpu_thread_policy",
    const.EMULATOR_THREADS: "emulator_threads",
    const.NUMA_NODES: "numa_nodes",
    const.MEM_PAGE_SIZE: "mem_page_size",
    const.VIF_MULTIQUEUE: "vif_multiqueue",
    "hw:cpu_max_sockets": "guest_topology.sockets",
    "hw:cpu_sockets": "guest_topology.sockets",
    "hw:cpu_threads": "guest_topology.threads",
    "hw:locked_memory": "locked_memory",
    "hw:virtio_packed_ring": "packed_ring",
    "hw:pmu": "pmu",
    "hw:cpu_realtime": "realtime",
    "hw:cpu_realtime_mask": "realtime.mask",
    "hw:maxphysaddr_mode": "maxphysaddr.mode",
    "hw:maxphysaddr_bits": "maxphysaddr.bits",
}
# Limits and preferences beside those of ``guest_topology``: Nova would find another
# topology, or none.
OTHER_TOPOLOGY: Final = frozenset(
    {"hw:cpu_cores", "hw:cpu_max_cores", "hw:cpu_max_threads"}
)
# Extra specs that divide a VM unevenly; the number of a guest's node may follow.
_UNEVEN: Final = re.compile(r"hw:cpu_dedicated_mask|hw:numa_(cpus|mem)\.\d+")
_ASKS: Final = re.compile(r"(?:resources|trait)[^:]*:(.*)")
# Amounts that Nova derives from the flavor's size.
_NOVAS: Final = ("PCPU", "VCPU", "MEMORY_MB")
_THROTTLES: Final = ("quota:cpu_quota", "quota:cpu_period")
# Image properties without an extra spec of that name, and the key of the class.
_OF_IMAGES: Final = {
    "hw_disk_bus": "disk.bus",
    "hw_scsi_model": "disk.bus",
    "hw_vif_model": "vif_multiqueue",
}


def as_extra_spec(key: str) -> str:
    """Return the extra spec of an image property, or the extra spec that it is."""
    return key if ":" in key else key.replace("_", ":", 1)


def refusal(key: str, *, pinned: bool) -> str | None:
    """Return why a key of Nova is not for ``extra_specs`` or ``image_properties``.

    None for a key that an operator may set on flavors and images of a class.

    :param pinned: whether VMs of the class own their CPUs
    """
    spec = as_extra_spec(key)
    asked = _ASKS.fullmatch(key)
    name = asked[1] if asked else ""
    own = WRITTEN.get(spec) or _OF_IMAGES.get(key)
    reasons = {
        f"the class's key {own} decides it": own is not None,
        "the class's name decides it": spec.startswith(f"{const.NAMESPACE}:"),
        "the policy's key placement decides it": name.startswith(const.CUSTOM_PREFIX),
        "Nova derives it from the flavor's size": name in _NOVAS,
        "the class's key numa_nodes splits VMs evenly": _UNEVEN.fullmatch(spec),
        "it throttles CPUs that the VM owns": pinned and key in _THROTTLES,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
