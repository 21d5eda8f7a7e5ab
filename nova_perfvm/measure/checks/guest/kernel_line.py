# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel runs without arguments that change its CPUs, memory or idling.

The host is not to blame for such arguments, but measurements in this guest then say
nothing about other VMs of the flavor.  proof.same_settings compares mitigations with
those of the host (Linux, Documentation/admin-guide/kernel-parameters).
"""

from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError

_PATH: Final = "/proc/cmdline"
_CPUS: Final = "it leaves out vCPUs"
_WORDS: Final = {
    **dict.fromkeys(("maxcpus", "nr_cpus", "nosmt", "nosmp", "isolcpus"), _CPUS),
    **dict.fromkeys(("mem", "memmap"), "it leaves out memory"),
    "no-steal-acc": "the guest does not count steal time",
    "idle=poll": "idle vCPUs poll instead of sleeping",
}
# Arguments without a value, by which a kernel command line is recognised.
_ALONE: Final = frozenset(("ro", "rw", "quiet", *_WORDS))


@check_of(
    75,
    "guest.kernel_line",
    source=_PATH,
    remedy="take it off the kernel's command line, and measure",
)
def kernel_line(guest: GuestSubject) -> Seen:
    """No kernel argument sets a guest apart from others of its flavor."""
    arguments = guest.collected.text(_PATH).split()
    if not any(one in _ALONE or "=" in one for one in arguments):
        raise NotReadError(_PATH, "no kernel argument found")
    yield Level.OK, f"{len(arguments)} arguments looked at"
    for one in arguments:
        if why := _WORDS.get(one) or _WORDS.get(one.partition("=")[0]):
            yield Level.UNKNOWN, f"{one}: {why}"
