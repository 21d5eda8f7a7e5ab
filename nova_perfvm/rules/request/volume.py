# SPDX-License-Identifier: Apache-2.0
"""A VM of a class that lives on network volumes boots from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

NOT_VOLUME_BACKED: Final = Refusal(
    "request.not_volume_backed",
    lambda _: (
        "VMs of this class boot from a volume, this one boots from an image: use "
        "openstack server create --boot-from-volume, or --volume"
    ),
    audit="audit.not_of_class",
)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    if vm_class.disk.source == "volume" and request.volume_backed is False:
        yield NOT_VOLUME_BACKED.because()


RULE: Final = RequestRule(90, _check, (NOT_VOLUME_BACKED,))
