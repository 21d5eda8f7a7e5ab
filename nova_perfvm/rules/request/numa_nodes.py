# SPDX-License-Identifier: Apache-2.0
"""A VM is split evenly over as many NUMA nodes as its class says."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.request.cpu_policy import has_cpu_policy
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

NUMA_NODES: Final = Refusal(
    "flavor.numa_nodes",
    lambda d: (
        f"the request has {number_of(len(d['found']), 'NUMA node')} of "
        f"{', '.join(map(str, d['found']))} vCPUs, its class {d['expected']} of equal "
        "size"
    ),
    meaning="split over another number of NUMA nodes, or not evenly",
    advice="use a generated flavor; look for ``hw_numa_nodes`` on the image",
    audit=findings.NOT_OF_CLASS,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    if not has_cpu_policy(case):
        return
    if case.vm_class.numa_nodes is not None or case.vm_class.pinned:
        expected = case.vm_class.cells_per_vm
        sizes = [cell.vcpus + cell.pcpus for cell in case.request.cells]
        if len(sizes) != expected or len(set(sizes)) > 1:
            yield NUMA_NODES.because(found=sizes, expected=expected)


RULE: Final = RequestRule(40, _check, (NUMA_NODES,))
