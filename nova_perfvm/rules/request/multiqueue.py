# SPDX-License-Identifier: Apache-2.0
"""A VM of a class with ``vif_multiqueue`` has as many network queues as vCPUs.

With a single queue, one CPU gets all interrupts.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

NO_MULTIQUEUE: Final = Refusal(
    "request.no_multiqueue",
    meaning="the class needs multiqueue, and neither flavor nor image turn it on",
    advice=(
        "set ``hw_vif_multiqueue_enabled=true`` on the image, or use a generated flavor"
    ),
    audit=findings.NO_MULTIQUEUE,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    # Nova gives a VM of one vCPU one queue, whatever flavor and image say.
    if (
        case.vm_class.vif_multiqueue
        and case.request.vcpus > 1
        and not case.request.multiqueue
    ):
        yield NO_MULTIQUEUE.because()


RULE: Final = RequestRule(80, _check, (NO_MULTIQUEUE,), image=True)
