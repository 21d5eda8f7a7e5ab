# SPDX-License-Identifier: Apache-2.0
"""QEMU's own threads stay off the CPUs of other pinned VMs."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.checks.qemu_threads import judge_pin
from nova_perfvm.measure.observed.domains import Domain


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at the CPUs of the emulator's threads."""
    yield judge_pin(subject, domain, domain.name, domain.emulatorpin)


CHECK = Check(
    40,
    "hypervisor.emulator_pin",
    "QEMU's threads are kept off other VMs",
    of_pinned(look),
)
