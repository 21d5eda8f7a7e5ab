# SPDX-License-Identifier: Apache-2.0
"""A VM has exactly the vCPUs of its class: one odd size strands a whole slot.

A running server of the class may keep a former size.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

VCPUS: Final = Refusal(
    "flavor.vcpus",
    words=lambda d: (
        f"the flavor has {d['found']} vCPUs, its class exactly {d['expected']}"
        + (", except running servers of this former size" if d["former"] else "")
    ),
    meaning="the flavor's vCPUs are not the class's",
    advice=(
        "use a generated flavor: ``nova-perfvm flavor generate``; for servers from "
        "before the class was changed: ``former_vcpus``"
    ),
    audit=findings.WRONG_SIZE,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    found = case.request.vcpus
    former = found in case.vm_class.former_vcpus
    if case.vm_class.vcpus not in {None, found} and not (
        former and case.request.running_vcpus == found
    ):
        yield VCPUS.because(found=found, expected=case.vm_class.vcpus, former=former)


RULE: Final = RequestRule(20, _check, (VCPUS,))
