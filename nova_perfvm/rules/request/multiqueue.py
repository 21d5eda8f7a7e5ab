# SPDX-License-Identifier: Apache-2.0
"""A VM has as many network queues as vCPUs: else one CPU gets all interrupts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

NO_MULTIQUEUE: Final = Refusal(
    "request.no_multiqueue",
    lambda _: (
        "the class wants multiqueue, and neither hw:vif_multiqueue_enabled of the "
        "flavor nor hw_vif_multiqueue_enabled of the image is true"
    ),
    audit="audit.no_multiqueue",
)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    # Nova gives a VM of one vCPU one queue, whatever is asked.
    if vm_class.vif_multiqueue and request.vcpus > 1 and not request.multiqueue:
        yield NO_MULTIQUEUE.because()


RULE: Final = RequestRule(80, _check, (NO_MULTIQUEUE,), image=True)
