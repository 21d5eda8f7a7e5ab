# SPDX-License-Identifier: Apache-2.0
"""A VM has as many network queues as vCPUs: else one CPU gets all interrupts."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

NO_MULTIQUEUE: Final = Refusal(
    "request.no_multiqueue",
    lambda _: (
        "the class wants multiqueue, and neither hw:vif_multiqueue_enabled of the "
        "flavor nor hw_vif_multiqueue_enabled of the image is true"
    ),
    meaning="neither flavor nor image turn multiqueue on",
    advice=(
        "set ``hw_vif_multiqueue_enabled=true`` on the image, or use a generated flavor"
    ),
    audit=findings.NO_MULTIQUEUE,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    # Nova gives a VM of one vCPU one queue, whatever is asked.
    if (
        case.vm_class.vif_multiqueue
        and case.request.vcpus > 1
        and not case.request.multiqueue
    ):
        yield NO_MULTIQUEUE.because()


RULE: Final = RequestRule(80, _check, (NO_MULTIQUEUE,), image=True)
