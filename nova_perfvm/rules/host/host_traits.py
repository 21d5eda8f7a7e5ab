# SPDX-License-Identifier: Apache-2.0
"""A VM of a class with host_traits is on a host that has them in Placement.

Placement sees to that for what asks for it; the flavor's part is in the contract
(:mod:`nova_perfvm.placement.contract`).  nova-scheduler is not told the traits of
hosts: here is what explain says, and what the audit finds of servers that came
there otherwise.
"""

from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import STATES, HostCase, HostRule, Refusal

TRAIT_MISSING: Final = Refusal(
    "host.trait_missing",
    words=lambda d: (
        f"VMs of class {d['class']} run only on hosts with trait "
        f"{', '.join(d['missing'])}, which this one lacks"
    ),
    meaning=(
        "the host lacks a trait of the class's ``host_traits``. Generated flavors "
        "require them, so that Placement offers no such host; ``--availability-zone "
        "ZONE:HOST`` asks nobody. nova-scheduler is not told the traits of hosts: "
        "``explain`` says it, and the audit of servers that are there"
    ),
    advice=(
        "if the host has what the trait stands for, add it to those that its resource "
        "provider has, or, if it begins with ``CUSTOM_``, in its ``provider.yaml``"
    ),
    audit=findings.WRONG_HOST,
    remedy="migrate",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    if not case.vm_class.host_traits or case.host.traits is None:
        return None
    missing = [
        name for name in case.vm_class.host_traits if name not in case.host.traits
    ]
    if not missing:
        return None
    return TRAIT_MISSING.because(**{"class": case.vm_class.name, "missing": missing})


RULE: Final = HostRule(
    70, _check, (TRAIT_MISSING,), hosts=STATES, vms=("pinned", "shared")
)
