# SPDX-License-Identifier: Apache-2.0
"""The providers of a host have the traits in ``host_traits`` of the VM's class.

Flavors of the class require the traits (:mod:`nova_perfvm.placement.contract`), so
Placement offers no other hosts.  nova-scheduler does not know the traits of hosts:
this rule serves ``explain``, and the audit of servers that were forced to a host.
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
        "require these traits, so Placement offers no such host, but ``--availability-"
        "zone ZONE:HOST`` bypasses Placement. Only ``explain`` and the audit report "
        "the code: nova-scheduler does not know the traits of hosts"
    ),
    advice=(
        "if the host has the property that the trait stands for, add the trait to the "
        "host's resource provider; a ``CUSTOM_`` trait also in its ``provider.yaml``"
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
