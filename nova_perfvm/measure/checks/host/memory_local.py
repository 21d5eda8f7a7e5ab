# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's memory is on the NUMA node of its CPUs.

VMware's article puts the gain of local memory at 8 to 17 %, and had 99.2 % of it
local where it was best, with VMs that were not even pinned: 99 % can be had.

Of a VM with several NUMA nodes, each node's memory has to be where its CPUs are.
"""

from collections import Counter
from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain

LEAST_LOCAL = 0.99
# What QEMU has on a node beside the VM's memory: its heap, caches of Ceph's client.
_OWN_KB = 2**20


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Count the pages of a VM on its nodes, and on others."""
    nodes = subject.nodes_of(domain.pinned_cpus)
    if not nodes:
        yield skipped(domain.name, "its pins name no CPU of any node", domain.source)
        return
    memory = processes.memory(subject.collected, subject.process_of(domain))
    total = sum(memory.by_node.values())
    near = {node: memory.by_node.get(node, 0) for node in nodes}
    wanted: Counter[int] = Counter()
    for cell, vcpus in domain.cells.items() if len(domain.cells) > 1 else ():
        pins = (domain.vcpupins.get(vcpu, frozenset()) for vcpu in vcpus)
        for node in subject.nodes_of(frozenset().union(*pins)):
            wanted[node] += domain.cells_kb[cell]
    for node, most_kb in wanted.items():
        near[node] = min(near[node], most_kb + _OWN_KB)
    share = sum(near.values()) / total
    listed = ", ".join(
        f"{kb / 2**20:.2f} GiB on node {node}"
        for node, kb in sorted(memory.by_node.items())
    )
    yield judged(
        domain.name,
        f"at least {LEAST_LOCAL:.0%} on node {format_cpus(nodes)}"
        + "".join(
            f", {kb / 2**20:.2f} GiB of it on node {n}" for n, kb in wanted.items()
        ),
        # Down, so that 98.99 % does not look like 99 %.
        f"{int(share * 10000) / 100:.2f} %: {listed}",
        memory.source,
        holds=share >= LEAST_LOCAL,
        remedy="look at hypervisor.numatune, and at the free memory of its node; then "
        f"openstack server reboot --hard {domain.uuid}, or while it runs migratepages "
        "PID FROM TO (of package numactl; huge pages need as many free ones on TO)",
    )


CHECK = Check(
    60,
    "hypervisor.memory_local",
    "A pinned VM's memory is on its node",
    of_pinned(look),
)
