# SPDX-License-Identifier: Apache-2.0
"""The host has a clock that guests may read.

Without a stable TSC the kernel falls back to a device, and then kvm-clock is a system
call in guests (Linux, arch/x86/kvm/x86.c: only vclock mode TSC is told as stable).
"""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, judged
from nova_perfvm.measure.checks.guest.clocksource import DIRECTORY, FAST
from nova_perfvm.measure.checks.host_subject import HostSubject


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at the clock source."""
    path = f"{DIRECTORY}/current_clocksource"
    current = subject.collected.text(path).strip()
    yield judged(
        "clock source",
        "tsc",
        current or "none",
        path,
        holds=current in FAST,
        remedy="dmesg says why the TSC was given up; tsc=reliable on the kernel's "
        "command line where firmware is known to be good",
    )


CHECK = Check(87, "hypervisor.clocksource", "Guests may read the host's clock", find)
