# SPDX-License-Identifier: Apache-2.0
"""Each NUMA node with CPUs has memory."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at each node; those of memory alone hold no vCPU."""
    for node in subject.nodes:
        name = f"node {node.number}"
        if not node.cpus:
            reason = "it has no CPU, so no VM is pinned to it"
            yield skipped(name, reason, node.source, cause=Cause.NO_CPU)
        elif node.memory_kb is None:
            reason = subject.collected.unread.get(node.source, "it was not collected")
            yield skipped(name, reason, node.source)
        else:
            yield judged(
                name,
                "some memory of its own",
                f"{node.memory_kb / 2**20:.1f} GiB",
                node.source,
                holds=node.memory_kb > 0,
                remedy="fit memory to that socket, or switch off memory interleaving "
                "in the firmware; until then keep its CPUs out of cpu_dedicated_set: "
                "all memory of VMs there is remote",
            )


CHECK = Check(
    15, "hypervisor.memoryless_nodes", "Each NUMA node with CPUs has memory", find
)
