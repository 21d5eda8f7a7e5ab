# SPDX-License-Identifier: Apache-2.0
"""The guest reads the time without a call of the hypervisor."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged
from nova_perfvm.measure.checks.guest_subject import GuestSubject

DIRECTORY = "/sys/devices/system/clocksource/clocksource0"
# Read from memory or a register, on x86, ARM, POWER and Z; others (hpet, acpi_pm)
# are devices, of which each read is an exit of some microseconds.
FAST = ("kvm-clock", "tsc", "arch_sys_counter", "timebase", "tod")


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Look at the clock source."""
    path = f"{DIRECTORY}/current_clocksource"
    current = subject.collected.text(path).strip()
    offered = subject.collected.files.get(f"{DIRECTORY}/available_clocksource", "")
    fast = [name for name in offered.split() if name in FAST]
    yield judged(
        "clock source",
        "kvm-clock or tsc",
        current or "none",
        path,
        holds=current in FAST,
        otherwise=Level.WARNING,
        remedy=f"echo {fast[0]} > {path}, and take clocksource= and no-kvmclock off "
        "the kernel's command line"
        if fast
        else "offer kvm-clock: the host must use KVM, and the CPU model have kvmclock",
    )


CHECK = Check(70, "guest.clocksource", "Reading the time is cheap", find)
