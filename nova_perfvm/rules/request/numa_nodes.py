# SPDX-License-Identifier: Apache-2.0
"""A VM is split evenly over as many NUMA nodes as its class says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.request.cpu_policy import has_cpu_policy
from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

NUMA_NODES: Final = Refusal(
    "flavor.numa_nodes",
    lambda d: (
        f"the request has {len(d['found'])} NUMA node(s) of "
        f"{', '.join(map(str, d['found']))} vCPUs, its class {d['expected']} of equal "
        "size"
    ),
    audit="audit.not_of_class",
)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    if not has_cpu_policy(vm_class, request):
        return
    if vm_class.numa_nodes is not None or vm_class.pinned:
        expected = vm_class.cells_per_vm
        sizes = [cell.vcpus + cell.pcpus for cell in request.cells]
        if len(sizes) != expected or len(set(sizes)) > 1:
            yield NUMA_NODES.because(found=sizes, expected=expected)


RULE: Final = RequestRule(40, _check, (NUMA_NODES,))
