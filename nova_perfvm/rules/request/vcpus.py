# SPDX-License-Identifier: Apache-2.0
"""A VM has exactly the vCPUs of its class: one odd size strands a whole slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

VCPUS: Final = Refusal(
    "flavor.vcpus",
    lambda d: (
        f"the flavor has {d['found']} vCPUs, its class exactly {d['expected']}"
        + (", or a server that runs has them already" if d["former"] else "")
    ),
    audit="audit.wrong_size",
)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    found = request.vcpus
    former = found in vm_class.former_vcpus
    if vm_class.vcpus not in {None, found} and not (
        former and request.running_vcpus == found
    ):
        yield VCPUS.because(found=found, expected=vm_class.vcpus, former=former)


RULE: Final = RequestRule(20, _check, (VCPUS,))
