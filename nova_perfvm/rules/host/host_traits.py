# SPDX-License-Identifier: Apache-2.0
"""A VM of a class with host_traits is on a host that has them in Placement.

Placement sees to that for what asks for it; the flavor's part is in the contract
(:mod:`nova_perfvm.placement.contract`).  nova-scheduler is not told the traits of
hosts: here is what explain says, and what the audit finds of servers that came
there otherwise.
"""

from dataclasses import replace
from typing import Any, Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.placement.commands import set_traits
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostFix, HostRule, Refusal


def _fix(data: dict[str, Any], view: HostView) -> HostFix:
    """Give the traits to the host's provider."""
    missing = data["missing"]
    uuid = view.compute.provider
    step = (
        "if it has what they stand for, add the traits (the command sets all anew): "
        f"{set_traits(uuid, more=missing)}"
    )
    # Of others nova-compute takes the file to be wrong.
    if all(name.startswith("CUSTOM_") for name in missing):
        step += f"; or, in provider.yaml, traits: additional: [{', '.join(missing)}]"
    top, *others = view.tree
    top = replace(top, traits=top.traits | frozenset(missing))
    known = (view.facts.traits or frozenset()) | frozenset(missing)
    facts = view.facts._replace(traits=known)
    return HostFix(step, replace(view, facts=facts, tree=(top, *others)))


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
        "if the host has what the trait stands for, add it to the host's resource "
        "provider as ``explain`` shows, or, if it begins with ``CUSTOM_``, in its "
        "``provider.yaml``; else none needed"
    ),
    audit=findings.WRONG_HOST,
    remedy="migrate",
    fix=_fix,
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
    70, _check, (TRAIT_MISSING,), hosts="every", vms=("pinned", "shared")
)
