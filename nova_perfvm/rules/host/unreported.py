# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's host has no unpinned VM, not even one that Nova's figures lack.

This is the last rule: nova-scheduler finds VMs that move by database queries, only for
a host that no other rule refuses.
"""

from typing import Final

from nova_perfvm.facts import HostFacts, Reason
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.host.class_conflict import CLASS_CONFLICT
from nova_perfvm.rules.rule import HostCase, HostRule
from nova_perfvm.rules.slots import count_vms, host_mode


def vms_by_pins(policy: Policy, vm_class: VMClass, host: HostFacts) -> int | None:
    """Return the lowest number of VMs that own an open host's pinned CPUs, or None.

    None where the rule does not apply: Placement keeps the classes apart, the class is
    not exclusive, or the host is not open.  Elsewhere the host's figures may miss
    unpinned VMs: they are up to a minute old and lack VMs that may move back.
    """
    if (
        scheme_of(policy).counts
        or vm_class.exclusive == "none"
        or host_mode(host) != "open"
    ):
        return None
    return count_vms(vm_class, host).least


def _check(case: HostCase[VMClass]) -> Reason | None:
    """Refuse if ``HostFacts.unpinned`` is above 0, where the rule applies."""
    host = case.host
    if not host.unpinned or vms_by_pins(case.policy, case.vm_class, host) is None:
        return None
    return CLASS_CONFLICT.because(
        why=f"the host has {number_of(host.unpinned, 'VM')} of another class (counting "
        "VMs in motion)"
    )


RULE: Final = HostRule(200, _check, (CLASS_CONFLICT,), vms=("pinned",))
