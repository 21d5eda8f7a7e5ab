# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel was not told to be other than the flavor's VMs are.

What a command line takes away or adds is no fault of the host, and what such a guest
measures says nothing of others (Linux, Documentation/admin-guide/kernel-parameters).
"""

import re
from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, passed, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError

_PATH: Final = "/proc/cmdline"
_CPUS: Final = "it leaves out vCPUs"
_SAFE: Final = "it spares what safety costs other guests"
_WORDS: Final = {
    **dict.fromkeys(("maxcpus", "nr_cpus", "nosmt", "nosmp", "isolcpus"), _CPUS),
    **dict.fromkeys(("mem", "memmap"), "it leaves out memory"),
    **dict.fromkeys(("mitigations=off", "nopti", "pti=off", "nospectre_v2"), _SAFE),
    "no-steal-acc": "it does not count what is stolen",
    "idle=poll": "its vCPUs never rest, as those of other guests do",
}


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Look for arguments that make a measurement another one."""
    arguments = subject.collected.text(_PATH).split()
    if not any(re.match(r"[A-Za-z_.-]+=.", one) for one in arguments):
        raise NotReadError(_PATH, "it names nothing that a kernel was told")
    for one in arguments:
        why = _WORDS.get(one) or _WORDS.get(one.partition("=")[0])
        if why:
            reason = f"{one}: {why}: take it off the kernel's command line, and measure"
            yield skipped("command line", reason, _PATH)
    expected = "nothing that takes away or adds to what other guests have"
    yield passed("arguments", expected, f"{len(arguments)} looked at", _PATH)


CHECK = Check(75, "guest.kernel_line", "The guest is as others are", find)
