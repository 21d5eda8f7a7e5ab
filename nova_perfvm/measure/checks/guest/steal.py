# SPDX-License-Identifier: Apache-2.0
"""Nobody else uses the CPUs of the guest.

The guest's side of what ``hypervisor.vcpu_wait`` sees on the host.
"""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, passed, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.wait_limits import (
    EXPECTED,
    FAIL_ABOVE,
    WARN_ABOVE,
    idle,
)
from nova_perfvm.measure.observed import stat

# Of a clock of 100 a second, so that one is no more than half a percent.
_LEAST_TICKS = 200


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge the vCPU that loses most."""
    times = stat.read(subject.collected)
    name = "steal time"
    if not any(time.stolen_ever for time in times.values()):
        reason = (
            "it stands at 0 since boot: perhaps the hypervisor does not tell "
            "(emulation without KVM never does); hypervisor.vcpu_wait on its host may"
        )
        yield skipped(name, reason, stat.PATH, cause=Cause.NEVER_STOLEN)
        return
    if min((time.total for time in times.values()), default=0) < _LEAST_TICKS:
        reason = "the looks are too near each other: take --interval 5 or more"
        yield skipped(name, reason, stat.PATH)
        return
    cpu, most = max(times.items(), key=lambda item: item[1].share)
    mean = sum(t.stolen for t in times.values()) / sum(t.total for t in times.values())
    reason = idle({n: 1 - time.idle / time.total for n, time in times.items()})
    if reason and most.share <= WARN_ABOVE:
        yield skipped(name, reason, stat.PATH)
        return
    observed = f"{most.share:.1%} of CPU {cpu}, {mean:.1%} of all"
    if most.share <= WARN_ABOVE:
        yield passed(name, EXPECTED, observed, stat.PATH)
        return
    shared = subject.vm_class is not None and not subject.vm_class.pinned
    grave = most.share > FAIL_ABOVE and not shared
    yield Finding(
        "",
        Level.FAILURE if grave else Level.WARNING,
        name,
        observed,
        EXPECTED,
        stat.PATH,
        "its class shares CPUs: take a class that owns them, or a host with fewer VMs"
        if shared
        else "look who else runs on the VM's CPUs: nova-perfvm host check, on its host",
    )


CHECK = Check(80, "guest.steal", "Nobody else uses the CPUs of the guest", find)
