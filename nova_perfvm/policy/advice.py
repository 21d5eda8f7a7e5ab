# SPDX-License-Identifier: Apache-2.0
"""Notes on the costs of a valid policy, for an operator to weigh."""

from collections.abc import Iterator

from nova_perfvm import findings
from nova_perfvm.documents.mistakes import KeyPath, Mistake
from nova_perfvm.findings import Finding
from nova_perfvm.policy.model import Policy
from nova_perfvm.policy.placements import rests_on_fallback
from nova_perfvm.policy.room import cell_slots


def advice(policy: Policy) -> Iterator[Finding]:
    """Yield notes on the costs of a valid policy: CPUs that VMs share with the host.

    Also note that ``placement: units`` needs an option that Nova will remove.
    """
    for vm_class in policy.pinned_classes:
        path = ("classes", vm_class.name)
        for shape in policy.host_shapes:
            need = vm_class.cell_takes(shape.threads)
            usable = shape.cell_cpus(vm_class.smt)
            if cell_slots(vm_class, shape) and usable % need == 0:
                yield _note(
                    findings.NO_CPU_FOR_HOST,
                    (*path, "vcpus"),
                    f"VMs of {need} CPUs may fill all {usable} CPUs of "
                    f"a NUMA node of {shape}: the host, QEMU's emulator threads and "
                    "vhost have no CPU of their own and run on the VMs' CPUs",
                )
        if vm_class.emulator_threads == "share":
            yield _note(
                findings.EMULATOR_THREADS_FLOAT,
                (*path, "emulator_threads"),
                "share needs [compute]cpu_shared_set on the host; without it "
                + (
                    "Nova starts no real-time VM"
                    if vm_class.realtime
                    else "emulator threads float on the VM's own CPUs"
                ),
            )
    if rests_on_fallback(policy.placement):
        yield _note(
            findings.RESTS_ON_FALLBACK,
            ("placement",),
            "units rests on Nova's fallback query from PCPU to VCPU "
            "([workarounds]disable_fallback_pcpu_query = False), which Nova means to "
            "remove one day",
        )


def _note(code: str, path: KeyPath, words: str) -> Finding:
    return Finding.of(code, "policy", str(Mistake(path, words)))
