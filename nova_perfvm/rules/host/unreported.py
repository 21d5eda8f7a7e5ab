# SPDX-License-Identifier: Apache-2.0
"""A VM of a pinned class meets no VM that Nova's figures of the host leave out.

It is the last rule: to find who moves takes queries, so nova-scheduler makes them for
a host only when no other rule refuses it.
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
    """Count the VMs that a host's pins are, where others there would go unnoticed.

    That is where Placement keeps no class from another, on a host that takes both:
    its own figures are up to a minute old, and leave out who may come back to it.
    None where nobody has to look who is there.
    """
    if (
        scheme_of(policy).counts
        or vm_class.exclusive == "none"
        or host_mode(host) != "open"
    ):
        return None
    return count_vms(vm_class, host).least


def _check(case: HostCase[VMClass]) -> Reason | None:
    host = case.host
    if not host.unpinned or vms_by_pins(case.policy, case.vm_class, host) is None:
        return None
    return CLASS_CONFLICT.because(
        why=f"the host has {number_of(host.unpinned, 'VM')} of another class, or may "
        "have when a move is over"
    )


RULE: Final = HostRule(200, _check, (CLASS_CONFLICT,), vms=("pinned",))
