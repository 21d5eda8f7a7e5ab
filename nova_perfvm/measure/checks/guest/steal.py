# SPDX-License-Identifier: Apache-2.0
"""Other programs of the host leave the guest its CPUs.

``hypervisor.vcpu_wait`` measures the same loss on the host.
"""

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, check_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.wait_limits import WARN_ABOVE, idle, level
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import stat

# At 100 ticks a second, two seconds; one tick is then half a percent.
_LEAST_TICKS = 200


@check_of(
    80,
    "guest.steal",
    title=f"Others use the CPUs of the guest {WARN_ABOVE:.0%} of the time at most",
    source=stat.PATH,
    remedy="look who else runs on the VM's CPUs: nova-perfvm host check, on its host; "
    "if its class shares CPUs, take one that owns them, or a host with fewer VMs",
)
def steal(guest: GuestSubject) -> Seen:
    """Judge the vCPU that loses most."""
    times = stat.read(guest.collected)
    if not any(time.stolen_ever for time in times.values()):
        reason = (
            "it stands at 0 since boot: perhaps the hypervisor does not tell "
            "(emulation without KVM never does); hypervisor.vcpu_wait on its host may"
        )
        yield Cause.NEVER_STOLEN, reason
        return
    if min(time.total for time in times.values()) < _LEAST_TICKS:
        reason = "the looks are too near each other: take --interval 5 or more"
        raise NotReadError(stat.PATH, reason)
    cpu, most = max(times.items(), key=lambda item: item[1].share)
    found = level(most.share)
    reason = idle({n: 1 - time.idle / time.total for n, time in times.items()})
    if reason and found is Level.OK:
        raise NotReadError(stat.PATH, reason)
    if guest.vm_class is not None and not guest.vm_class.pinned:
        # Its class shares CPUs.
        found = min(found, Level.WARNING)
    mean = sum(t.stolen for t in times.values()) / sum(t.total for t in times.values())
    yield found, f"{most.share:.1%} of CPU {cpu}, {mean:.1%} of all"
