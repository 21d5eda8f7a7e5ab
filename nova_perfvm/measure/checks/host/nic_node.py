# SPDX-License-Identifier: Apache-2.0
"""Each NUMA node with pinned VMs has a NIC of its own.

Packets of the others cross the link between the sockets.
"""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed import nics
from nova_perfvm.measure.observed.nics import NET

_SOURCE = f"{NET}/*/device/numa_node"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look for a NIC with a link on each node that has CPUs for pinned VMs."""
    where = subject.nodes_of(subject.cpu_sets.dedicated)
    if not where:
        return
    found: dict[str, int] = {}
    for nic in nics.read(subject.collected, None):
        text = subject.collected.files.get(f"{NET}/{nic.name}/device/numa_node", "")
        if nic.up and text.strip().isdigit():
            found[nic.name] = int(text)
        elif nic.up:
            yield skipped(
                nic.name,
                "the firmware does not tell its node"
                if text
                else "it was not collected",
                f"{NET}/{nic.name}/device/numa_node",
            )
    listed = ", ".join(f"{name} on node {node}" for name, node in found.items())
    for node in sorted(where) if found else ():
        yield judged(
            f"node {node}",
            "a NIC with a link on the node",
            listed,
            _SOURCE,
            holds=node in found.values(),
            otherwise=Level.WARNING,
            remedy="fit a NIC to a slot of that socket, or put the VMs with most "
            "packets on the other node; with SR-IOV, [neutron]physnets and "
            "[neutron_physnet_NAME]numa_nodes of nova.conf let Nova do it",
        )


CHECK = Check(80, "hypervisor.nic_node", "Each node with pinned VMs has a NIC", find)
