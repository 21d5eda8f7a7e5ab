# SPDX-License-Identifier: Apache-2.0
"""The CPU policy, NUMA nodes and thread policies of a VM are those of its class."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

CPU_POLICY: Final = Refusal(
    "flavor.cpu_policy",
    meaning="the VM is pinned and its class shares CPUs, or the reverse",
    advice="use a generated flavor; look for ``hw_cpu_policy`` on the image",
    words=lambda d: (
        f"the request's CPU policy is {d['found']}, its class's {d['expected']}"
    ),
    audit=findings.NOT_OF_CLASS,
)
NUMA_NODES: Final = Refusal(
    "flavor.numa_nodes",
    meaning=(
        "vCPUs or memory are split unevenly, or over more or fewer NUMA nodes than the "
        "class says"
    ),
    advice="use a generated flavor; look for ``hw_numa_*`` on the image",
    words=lambda d: (
        f"the request has {number_of(len(d['found']), 'NUMA node')} of "
        f"{', '.join(map(str, d['found']))} vCPUs and "
        f"{', '.join(map(str, d['memory_mb']))} MiB, its class {d['expected']} of "
        "equal size"
    ),
    audit=findings.NOT_OF_CLASS,
)
CPU_THREAD_POLICY: Final = Refusal(
    "flavor.cpu_thread_policy",
    meaning="the CPU thread policy differs from the class's, so Nova picks other CPUs",
    advice="use a generated flavor; look for ``hw_cpu_thread_policy`` on the image",
    words=lambda d: (
        f"the request's CPU thread policy is {d['found']}, its class's {d['expected']}"
    ),
    audit=findings.NOT_OF_CLASS,
)
EMULATOR_THREADS: Final = Refusal(
    "flavor.emulator_threads",
    meaning="``hw:emulator_threads_policy`` is not the class's",
    advice="use a generated flavor",
    words=lambda d: (
        f"the request's emulator threads policy is {d['found'] or 'not set'}, its "
        f"class's {d['expected'] or 'not set'}"
    ),
    audit=findings.NOT_OF_CLASS,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    """Yield a reason for a wrong CPU policy alone, else one for each other mistake."""
    vm_class, cells = case.vm_class, case.request.cells
    found = "shared"
    if case.request.pinned:
        found = "mixed" if any(cell.vcpus for cell in cells) else "dedicated"
    if found != vm_class.cpu_policy:
        yield CPU_POLICY.because(found=found, expected=vm_class.cpu_policy)
        return
    if vm_class.numa_nodes is not None or vm_class.pinned:
        sizes = [cell.vcpus + cell.pcpus for cell in cells]
        memory_mb = [cell.memory_mb for cell in cells]
        nodes = vm_class.cells_per_vm
        if len(sizes) != nodes or len({*zip(sizes, memory_mb, strict=True)}) > 1:
            yield NUMA_NODES.because(found=sizes, memory_mb=memory_mb, expected=nodes)
    if not vm_class.pinned:
        return
    wanted = vm_class.cpu_thread_policy or "prefer"
    policies = {cell.cpu_thread_policy or "prefer" for cell in cells}
    if policies != {wanted}:
        words = ", ".join(sorted(policies))
        yield CPU_THREAD_POLICY.because(found=words, expected=wanted)
    # Nova pins an additional CPU for isolate, so flavor and class must agree on it.
    # With share, or without a policy, Nova pins none.
    threads, expected = case.request.emulator_threads, vm_class.emulator_threads
    if (threads == "isolate") != (expected == "isolate"):
        yield EMULATOR_THREADS.because(found=threads, expected=expected)


RULE: Final = RequestRule(
    30, _check, (CPU_POLICY, NUMA_NODES, CPU_THREAD_POLICY, EMULATOR_THREADS)
)
