# SPDX-License-Identifier: Apache-2.0
"""Each pinned VM has a thread for its disks, kept off the CPUs of other VMs.

Nova gives one to each VM since 2026.1; a VM gets it when its XML is written anew.
"""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, warned
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.checks.qemu_threads import judge_pin
from nova_perfvm.measure.observed.domains import Domain


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at the I/O threads of a VM."""
    if not domain.iothreads:
        yield warned(
            domain.name,
            "an I/O thread, as Nova gives since 2026.1",
            "none: QEMU's main thread serves all its disks",
            domain.source,
            f"openstack server reboot --hard {domain.uuid}, once its host runs Nova "
            "2026.1 or later",
        )
    for number in range(1, domain.iothreads + 1):
        name = f"{domain.name}: I/O thread {number}"
        yield judge_pin(subject, domain, name, domain.iothreadpins.get(number))


CHECK = Check(
    45,
    "hypervisor.iothread_pin",
    "Disks have a thread, off other VMs' CPUs",
    of_pinned(look),
)
