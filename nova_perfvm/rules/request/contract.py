# SPDX-License-Identifier: Apache-2.0
"""A request asks Placement for exactly the resources and traits of its class.

The rule reads only the flavor and the image, so outdated facts about hosts do not
affect it.
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
    "``openstack perfvm flavor sync``; resize servers whose embedded flavor is wrong"
)
RESOURCES: Final = Refusal(
    "flavor.resources",
    words=_words,
    meaning=(
        "the flavor asks Placement for other amounts than its class does, such as no "
        "slot; or it sets amounts of PCPU, VCPU or MEMORY_MB itself"
    ),
    advice=_ADVICE,
    audit=findings.CONTRACT_DIFFERS,
)
TRAITS: Final = Refusal(
    "flavor.traits",
    words=_words,
    meaning="the flavor requires or forbids other traits of nova_perfvm than its class",
    advice=_ADVICE,
    audit=findings.CONTRACT_DIFFERS,
)
CODES: Final = frozenset({RESOURCES.code, TRAITS.code})


def _check(case: RequestCase[VMClass | None]) -> Iterator[Reason]:
    """Yield the differences of resources and of traits between request and class.

    A flavor that names no class must ask for no resource or trait of nova_perfvm;
    elastic hosts are then closed to it.
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
            # The scheme counts nothing in Placement, so surplus resources do no harm.
            found, missing = [], missing if claimed else []
        if found or missing:
            yield refusal.because(found=found, expected=missing)


def _names_project(request: RequestFacts) -> bool:
    """Return whether the flavor names a resource class or trait of nova-perfvm."""
    return any(is_ours(r.name) for r in request.resources) or any(
        is_ours(t.name) and t.source == "flavor" for t in request.traits
    )


RULE: Final = RequestRule(100, _check, (RESOURCES, TRAITS), claimed=False)
