# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel was not told to be other than the flavor's VMs are.

What a command line takes away or adds is no fault of the host, and what such a guest
measures says nothing of others; mitigations are compared with the host's by
proof.same_settings (Linux, Documentation/admin-guide/kernel-parameters).
"""

from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.seen import Seen, check_of
from nova_perfvm.measure.collect.collected import NotReadError

_PATH: Final = "/proc/cmdline"
_CPUS: Final = "it leaves out vCPUs"
_WORDS: Final = {
    **dict.fromkeys(("maxcpus", "nr_cpus", "nosmt", "nosmp", "isolcpus"), _CPUS),
    **dict.fromkeys(("mem", "memmap"), "it leaves out memory"),
    "no-steal-acc": "it does not count what is stolen",
    "idle=poll": "its vCPUs never rest, as those of other guests do",
}
# What a line without a value has.
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
        raise NotReadError(_PATH, "it names nothing that a kernel was told")
    yield Level.OK, f"{len(arguments)} arguments looked at"
    for one in arguments:
        if why := _WORDS.get(one) or _WORDS.get(one.partition("=")[0]):
            yield Level.UNKNOWN, f"{one}: {why}"
