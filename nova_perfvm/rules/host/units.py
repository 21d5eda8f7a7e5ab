# SPDX-License-Identifier: Apache-2.0
"""A VM on an enrolled host asks Placement for units or NUMA nodes of the host.

The rule applies to unmanaged hosts, too, as Placement does not judge forced hosts.
:mod:`nova_perfvm.rules.request.contract` judges the amounts.
"""

from collections.abc import Collection
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import STATES, HostCase, HostRule, Refusal


def _counted(traits: Collection[str]) -> str:
    """Return the resource class that VMs take on hosts with these traits."""
    return const.RC_CELL_CPU if const.TRAIT_CELLS in traits else const.RC_UNIT


UNITS_LACKING: Final = Refusal(
    "host.units_lacking",
    words=lambda d: (
        "the host is enrolled (an aggregate of it requires "
        f"{', '.join(d['traits'])}), and the flavor asks for no {_counted(d['traits'])}"
    ),
    meaning=(
        "the host is enrolled, and the flavor asks for none of its units or NUMA "
        "nodes; labels of the host do not matter"
    ),
    advice=(
        "use a generated flavor; under ``placement: cells`` general VMs run on other "
        "hosts"
    ),
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    if case.host.isolating and not any(
        r.name in const.CHILD_CLASSES for r in case.request.resources
    ):
        return UNITS_LACKING.because(traits=sorted(case.host.isolating))
    return None


RULE: Final = HostRule(10, _check, (UNITS_LACKING,), hosts=STATES)
