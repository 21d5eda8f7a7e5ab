# SPDX-License-Identifier: Apache-2.0
"""Nobody else uses the CPUs of the guest.

A vCPU that owns its CPU shares it with nobody but what the host has not kept off:
QEMU's own threads, vhost's, interrupts.  Judged is the vCPU that suffers most, as
parallel programs wait for it, and a mean over 20 hides one that loses a fifth.

1 % is 10 ms of each second, enough for the worst latency of 13.38 ms that LINE's
article found in a VM whose host had 0.66 ms, and more than interrupts and housekeeping
of an idle host take.  5 % is twice what that VM lost to its host in all (2.3 % of
sysbench's events): somebody else runs there.
"""

from collections.abc import Iterator

from nova_perfvm.measure.checks.check import Check, Finding, passed, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.observed import stat
from nova_perfvm.measure.outcome import Status

WARN_ABOVE = 0.01
FAIL_ABOVE = 0.05
# Of a clock of 100 a second, so that one is no more than half a percent.
_LEAST_TICKS = 200


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge the vCPU that loses most."""
    times = stat.read(subject.collected)
    name = "steal time"
    if not any(time.stolen_ever for time in times.values()):
        reason = (
            "it stands at 0 since boot: perhaps the hypervisor does not tell "
            "(emulation without KVM never does)"
        )
        yield skipped(name, reason, stat.PATH)
        return
    if min((time.total for time in times.values()), default=0) < _LEAST_TICKS:
        reason = "the looks are too near each other: take --interval 5 or more"
        yield skipped(name, reason, stat.PATH)
        return
    cpu, most = max(times.items(), key=lambda item: item[1].share)
    mean = sum(t.stolen for t in times.values()) / sum(t.total for t in times.values())
    expected = f"at most {WARN_ABOVE:.0%} of the time of each vCPU"
    observed = f"{most.share:.1%} of CPU {cpu}, {mean:.1%} of all"
    if most.share <= WARN_ABOVE:
        yield passed(name, expected, observed, stat.PATH)
        return
    shared = subject.vm_class is not None and not subject.vm_class.pinned
    grave = most.share > FAIL_ABOVE and not shared
    yield Finding(
        Status.FAIL if grave else Status.WARN,
        name,
        expected,
        observed,
        stat.PATH,
        "its class shares CPUs: take a class that owns them, or a host with fewer VMs"
        if shared
        else "look who else runs on the VM's CPUs: nova-perfvm host check, on its host",
    )


CHECK = Check(80, "guest.steal", "Nobody else uses the CPUs of the guest", find)
