# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's emulator threads take a CPU of their own if its class says so."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.request.cpu_policy import has_cpu_policy
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

EMULATOR_THREADS: Final = Refusal(
    "flavor.emulator_threads",
    lambda d: (
        f"the request's emulator threads policy is {d['found'] or 'not set'}, its "
        f"class's {d['expected'] or 'not set'}"
    ),
    meaning="``hw:emulator_threads_policy`` is not the class's",
    advice="use a generated flavor",
    audit=findings.NOT_OF_CLASS,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    if not case.vm_class.pinned or not has_cpu_policy(case):
        return
    # Nova takes an additional CPU for isolate, so neither may be chosen by a
    # flavor alone; share takes none and Nova has no word for "no policy".
    found, expected = case.request.emulator_threads, case.vm_class.emulator_threads
    if (found == "isolate") != (expected == "isolate"):
        yield EMULATOR_THREADS.because(found=found, expected=expected)


RULE: Final = RequestRule(60, _check, (EMULATOR_THREADS,))
