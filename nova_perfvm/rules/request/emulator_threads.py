# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's emulator threads take a CPU of their own if its class says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.request.cpu_policy import has_cpu_policy
from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

EMULATOR_THREADS: Final = Refusal(
    "flavor.emulator_threads",
    lambda d: (
        f"the request's emulator threads policy is {d['found'] or 'not set'}, its "
        f"class's {d['expected'] or 'not set'}"
    ),
    audit="audit.not_of_class",
)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    if not vm_class.pinned or not has_cpu_policy(vm_class, request):
        return
    # Nova takes an additional CPU for isolate, so neither may be chosen by a
    # flavor alone; share takes none and Nova has no word for "no policy".
    found, expected = request.emulator_threads, vm_class.emulator_threads
    if (found == "isolate") != (expected == "isolate"):
        yield EMULATOR_THREADS.because(found=found, expected=expected)


RULE: Final = RequestRule(60, _check, (EMULATOR_THREADS,))
