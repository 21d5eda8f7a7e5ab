# SPDX-License-Identifier: Apache-2.0
"""Host and VM NICs lose no packets, and each node of dedicated CPUs has a NIC.

Without a NIC on its node a VM's packets cross the link between the sockets.
"""

from itertools import repeat

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.check import Findings, Seen, check, check_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.nics import NET, read


def nics(host: HostSubject) -> list[str]:
    """Return the names of the host's NICs and of its VMs' tap devices."""
    of_vms = [
        nic.target
        for domain in host.domains
        for nic in domain.interfaces
        # A socket of a vhost-user switch is no network device of the kernel.
        if nic.target and nic.kind != "vhostuser"
    ]
    return [*packets.devices(host.collected), *of_vms]


@check_of(
    80,
    "hypervisor.nic_node",
    source=f"{NET}/*/device/numa_node, {NET}/*/speed",
    remedy="fit a NIC to a slot of that socket, or put the VMs with most packets "
    "on the other node; with SR-IOV, [neutron]physnets and [neutron_physnet_NAME]"
    "numa_nodes of nova.conf let Nova do it",
)
def nic_node(host: HostSubject) -> Seen:
    """Each node with pinned VMs has a NIC with a link, none much slower."""
    where = host.nodes_of(host.cpu_sets.dedicated)
    found: dict[str, int] = {}
    speeds = packets.speeds(host.collected)
    numbers = [str(node.number) for node in host.nodes]
    for nic in read(host.collected, None) if where else ():
        if "/usb" in host.collected.links.get(f"{NET}/{nic.name}", ""):
            # The management controller's, for the host alone.
            continue
        path = f"{NET}/{nic.name}/device/numa_node"
        text = host.collected.files.get(path, "").strip()
        if text == "-1" and len(numbers) == 1:
            # Firmware need not name a machine's only node.
            text = numbers[0]
        if nic.up and text.isdecimal():
            found[nic.name] = int(text)
        elif nic.up:
            reason = f"neither firmware nor kernel tells the node of {nic.name}"
            yield NotReadError(path, reason)
    for node in sorted(where) if found else ():
        near = [name for name, number in found.items() if number == node]
        level = Level.OK if near else Level.WARNING
        yield level, f"{', '.join(near) or 'none'} on node {node}"
        fastest, best = (
            max(map(speeds.get, of, repeat(0))) for of in (found, near or [""])
        )
        if not near or 2 * best >= fastest:
            continue
        untold = [name for name in near if name not in speeds]
        if untold:
            reason = f"the kernel does not tell the speed of {', '.join(untold)}"
            yield NotReadError(f"{NET}/{untold[0]}/speed", reason)
        else:
            yield Level.WARNING, f"node {node} has {best} of {fastest} Mbit/s"


SOFTNET_DROPS = packets.backlogs(81, "hypervisor.softnet_drops")


@check(82, "hypervisor.nic_losses")
def nic_losses(host: HostSubject) -> Findings:
    """NICs of host and VMs lose no packets."""
    return packets.findings_of_nics(host.collected, nics(host))


@check(83, "hypervisor.nic_settings")
def nic_settings(host: HostSubject) -> Findings:
    """NICs of the host have their offloads, and spread packets over all rings."""
    return packets.settings_of_nics(host.collected)
