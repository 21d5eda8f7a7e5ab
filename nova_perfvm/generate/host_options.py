# SPDX-License-Identifier: Apache-2.0
"""Options of nova-compute that a policy may ask for on all hosts, by ``host_options``.

None is set without the policy's word: each has a price, and no measurement of ours
says that every cloud gains by it.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm.placement.settings import Setting
from nova_perfvm.policy import Policy


def _libvirt(option: str, value: str, why: str, default: str) -> Setting:
    return Setting("libvirt", option, (value,), why, default=default)


_TABLE: Final = (
    _libvirt(
        "rx_queue_size",
        "1024",
        "Rings of virtio network cards that hold bursts; VMs get them when they start "
        "anew.",
        "256",
    ),
    _libvirt(
        "tx_queue_size",
        "1024",
        "As rx_queue_size, for ports of a userspace switch (vhost-user) alone.",
        "256",
    ),
    _libvirt(
        "num_pcie_ports",
        "16",
        "PCIe ports of q35 guests, one for each volume or port that is attached later.",
        "0 (libvirt decides)",
    ),
    _libvirt(
        "mem_stats_period_seconds",
        "0",
        "No balloon in guests, which could take memory from them. The price: nobody "
        "sees from outside how much memory guests use.",
        "10",
    ),
    _libvirt(
        "cpu_power_management",
        "True",
        "Dedicated CPUs that no VM owns go offline. The price: a VM that starts waits "
        "for them.",
        "False",
    ),
    _libvirt(
        "num_nvme_discover_tries",
        "10",
        "More patience for NVMe namespaces that appear late.",
        "5",
    ),
    _libvirt(
        "volume_use_multipath",
        "True",
        "All paths to a volume. Leave volume_enforce_multipath out: nova-compute would "
        "not start without multipathd, which native multipath of NVMe does not need.",
        "False",
    ),
)
OPTIONS: Final = {setting.option: setting for setting in _TABLE}


def wanted(policy: Policy) -> Iterator[Setting]:
    """Yield the options that a policy asks for, in the order of the policy."""
    yield from (OPTIONS[name] for name in policy.host_options)
