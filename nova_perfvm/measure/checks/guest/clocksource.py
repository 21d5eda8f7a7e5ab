# SPDX-License-Identifier: Apache-2.0
"""The guest reads the time without an exit to the hypervisor."""

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
# Read from memory or a register, on x86, ARM, POWER and Z.  Each read of a device
# (hpet, acpi_pm) costs an exit of some microseconds.
FAST = ("kvm-clock", "tsc", "arch_sys_counter", "timebase", "tod")


@check_of(
    70,
    "guest.clocksource",
    source=CURRENT,
    remedy=f"echo kvm-clock > {CURRENT}, and take clocksource= and no-kvmclock off the "
    "kernel's command line; it needs a host with KVM, and a CPU model with kvmclock",
)
def clocksource(guest: GuestSubject) -> Seen:
    """Time is cheap to read: from kvm-clock or tsc."""
    current = guest.collected.text(CURRENT).strip()
    yield Level.OK if current in FAST else Level.WARNING, current or "none"
