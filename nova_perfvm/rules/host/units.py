# SPDX-License-Identifier: Apache-2.0
"""A VM that comes to an enrolled host takes units or NUMA nodes of it.

Placement does not look at hosts that are forced, so this holds whatever the
policy's labels say.  Whether the units are the right ones is judged with the request.
"""

from collections.abc import Collection
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import STATES, HostCase, HostRule, Refusal


def _counted(traits: Collection[str]) -> str:
    """Return what VMs take of hosts with these traits."""
    return const.RC_CELL_CPU if const.TRAIT_CELLS in traits else const.RC_UNIT


UNITS_LACKING: Final = Refusal(
    "host.units_lacking",
    words=lambda d: (
        "the host is enrolled (an aggregate of it requires "
        f"{', '.join(d['traits'])}), and the flavor asks for no {_counted(d['traits'])}"
    ),
    meaning=(
        "an enrolled host, whatever its labels say, and the flavor asks for none of "
        "its units or NUMA nodes"
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
