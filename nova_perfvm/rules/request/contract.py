# SPDX-License-Identifier: Apache-2.0
"""A request asks Placement for exactly what its class's contract says.

This rests on the flavor and the image alone, so it holds however old the
scheduler's facts of hosts are.
"""

from collections.abc import Iterator
from typing import Any, Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason, RequestFacts
from nova_perfvm.placement.contract import (
    contract,
    resource_differences,
    trait_differences,
)
from nova_perfvm.placement.schemes import is_ours, scheme_of
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule


def _words(data: dict[str, Any]) -> str:
    return (
        f"the flavor asks Placement for {'; '.join(data['found']) or 'nothing'} where "
        f"its class asks for {'; '.join(data['expected']) or 'nothing'}"
    )


_ADVICE: Final = (
    "``openstack perfvm flavor sync``; a server that has it embedded: resize it"
)
RESOURCES: Final = Refusal(
    "flavor.resources",
    words=_words,
    meaning=(
        "the flavor asks Placement for other amounts than VMs of its class take, such "
        "as no slot; or it names PCPU, VCPU or MEMORY_MB of its own"
    ),
    advice=_ADVICE,
    audit=findings.CONTRACT_DIFFERS,
)
TRAITS: Final = Refusal(
    "flavor.traits",
    words=_words,
    meaning="the flavor requires or forbids other traits of the project than its class",
    advice=_ADVICE,
    audit=findings.CONTRACT_DIFFERS,
)
CODES: Final = frozenset({RESOURCES.code, TRAITS.code})


def _check(case: RequestCase[VMClass | None]) -> Iterator[Reason]:
    """Yield what a request names of Placement otherwise than its class does.

    A flavor that names neither a class nor anything of the project is left as it
    is: it was there before, and elastic hosts are closed to it.  One of no class
    that names such a thing should name nothing.
    """
    policy, vm_class, request = case
    claimed = request.class_name is not None
    if (claimed and vm_class is None) or not (claimed or _names_project(request)):
        return
    expected = None
    if vm_class is not None:
        mine = vm_class.of_size(request.vcpus)
        expected = contract(policy, mine, request.memory_mb)
    for refusal, differences in (
        (RESOURCES, resource_differences),
        (TRAITS, trait_differences),
    ):
        found, missing = differences(expected, request)
        if not scheme_of(policy).counts:
            # Placement counts nothing: whatever more a flavor names does no harm.
            found, missing = [], missing if claimed else []
        if found or missing:
            yield refusal.because(found=found, expected=missing)


def _names_project(request: RequestFacts) -> bool:
    return any(is_ours(r.name) for r in request.resources) or any(
        is_ours(t.name) and t.source == "flavor" for t in request.traits
    )


RULE: Final = RequestRule(100, _check, (RESOURCES, TRAITS), claimed=False)
