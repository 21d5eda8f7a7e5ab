# SPDX-License-Identifier: Apache-2.0
"""Say what a valid policy costs, for an operator to weigh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nova_perfvm import findings
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.policy import placements
from nova_perfvm.policy.room import cell_slots
from nova_perfvm.printable import number_of

if TYPE_CHECKING:
    from nova_perfvm.policy.model import Policy


class Advice(NamedTuple):
    """One thing to know of a policy.

    :ivar code: dotted and stable
    """

    code: str
    problem: Mistake

    def __str__(self) -> str:
        """Return ``code: key: what it costs``."""
        return f"{self.code}: {self.problem}"


def advice(policy: Policy) -> Iterator[Advice]:
    """List what a policy costs; none of it is a mistake, or can be mended."""
    for vm_class in policy.pinned_classes:
        path = ("classes", vm_class.name)
        for shape in policy.host_shapes:
            free = shape.cell_cpus(vm_class.smt) % vm_class.cell_pcpus
            fits = cell_slots(vm_class, shape)
            if fits and free == 0:
                yield Advice(
                    findings.NO_CPU_FOR_HOST,
                    Mistake(
                        (*path, "vcpus"),
                        f"{number_of(fits, 'VM')} of {vm_class.cell_pcpus} CPUs may "
                        f"fill all {shape.cell_cpus(vm_class.smt)} CPUs of a NUMA node "
                        f"of {shape}: the host, QEMU's emulator threads and vhost have "
                        "no CPU of their own and run on the VMs' CPUs",
                    ),
                )
            if shape.threads > 1 and vm_class.smt == "threads":
                yield Advice(
                    findings.THREADS_NOT_CORES,
                    Mistake(
                        (*path, "smt"),
                        f"on {shape} a vCPU is one of {shape.threads} threads of a "
                        "core: a VM gets "
                        f"{vm_class.vcpus} threads, not {vm_class.vcpus} cores",
                    ),
                )
        if vm_class.emulator_threads == "share":
            yield Advice(
                findings.EMULATOR_THREADS_FLOAT,
                Mistake(
                    (*path, "emulator_threads"),
                    "share needs [compute]cpu_shared_set on the host; without it "
                    "emulator threads float on the VM's own CPUs",
                ),
            )
    for code, problem in placements.costs_of(policy):
        yield Advice(code, problem)
