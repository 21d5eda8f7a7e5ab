# SPDX-License-Identifier: Apache-2.0
"""A network interface has as many queue pairs as the guest has vCPUs."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, failed, passed, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.vectors import FIX_SCRIPT, MULTIQUEUE
from nova_perfvm.measure.observed.nics import NIC, Kind

# MAX_TAP_QUEUES of the host's kernel: no tap device has more.
_MOST_OF_TAP = 256


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge each network interface."""
    for nic in subject.nics:
        yield _judged(subject, nic)


def _judged(subject: GuestSubject, nic: NIC) -> Finding:
    if reason := _no_rule(subject, nic):
        return skipped(nic.name, reason)
    if nic.present is None:
        return skipped(nic.name, "how many queues it has was not read")
    vcpus, present = subject.vcpus, nic.present.number
    wanted, limit = min(vcpus, _MOST_OF_TAP), ""
    if nic.kind is Kind.PASSED_THROUGH and present < wanted:
        # So many the hardware grants; no flavor changes that.
        wanted, limit = present, ", the limit of the device"
    observed, sources = f"{present} present{limit}", [nic.present.source]
    if nic.enabled is not None:
        observed += f", {nic.enabled.number} enabled"
        sources.append(nic.enabled.source)
    named = (
        nic.name,
        f"{wanted} queue pairs for {vcpus} vCPUs, all enabled",
        observed,
        "; ".join(dict.fromkeys(sources)),
    )
    if present < wanted:
        return failed(*named, MULTIQUEUE)
    if nic.enabled is None:
        return skipped(nic.name, f"{observed}; how many are enabled was not read")
    if nic.enabled.number < wanted:
        return failed(*named, f"ethtool -L {nic.name} combined {wanted}; {FIX_SCRIPT}")
    return passed(*named)


def _no_rule(subject: GuestSubject, nic: NIC) -> str:
    if nic.kind is Kind.OTHER:
        return f"no rule for the driver {nic.driver}"
    vm_class = subject.vm_class
    if vm_class is not None and not vm_class.vif_multiqueue:
        return f"class {vm_class.name} promises no multiqueue"
    return ""


CHECK = Check(
    20, "guest.nic_queues", "Each NIC has a queue pair for each vCPU, enabled", find
)
