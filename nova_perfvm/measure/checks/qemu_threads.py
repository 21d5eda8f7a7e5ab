# SPDX-License-Identifier: Apache-2.0
"""Where the threads of a VM that are not vCPUs may run."""

from __future__ import annotations

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import failed, judged
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed.domains import Domain

# Policies that promise that the vCPUs are left alone by these threads.
_APART = ("share", "isolate")


def others_cpus(subject: HostSubject, domain: Domain) -> frozenset[int]:
    """Return the CPUs that other pinned VMs own."""
    return frozenset().union(
        *(other.pinned_cpus for other in subject.pinned if other.uuid != domain.uuid)
    )


def judge_pin(
    subject: HostSubject, domain: Domain, name: str, pin: frozenset[int] | None
) -> Finding:
    """Judge the CPUs that libvirt gives to such a thread.

    :param name: what it is
    :param pin: None for any
    """
    vm_class = subject.class_of(domain)
    apart = vm_class is not None and vm_class.emulator_threads in _APART
    expected = "CPUs that no vCPU owns" if apart else "CPUs that no other VM owns"
    remedy = (
        f"openstack server reboot --hard {domain.uuid}; with emulator_threads: share "
        "the host needs [compute]cpu_shared_set"
    )
    if not pin:
        return failed(
            name, expected, "no pin: it floats over the host", domain.source, remedy
        )
    taken = others_cpus(subject, domain)
    if apart:
        taken |= domain.pinned_cpus
    return judged(
        name,
        expected,
        f"CPUs {format_cpus(pin)}"
        + (f", of which VMs own {format_cpus(pin & taken)}" if pin & taken else ""),
        domain.source,
        holds=not pin & taken,
        remedy=remedy,
    )
