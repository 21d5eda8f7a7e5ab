# SPDX-License-Identifier: Apache-2.0
"""A VM of a class with ``disk: {source: volume}`` boots from a volume."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

NOT_VOLUME_BACKED: Final = Refusal(
    "request.not_volume_backed",
    meaning="the class boots from volumes, this server boots from an image",
    advice="``openstack server create --boot-from-volume SIZE``",
    audit=findings.NOT_OF_CLASS,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    if case.vm_class.disk.source == "volume" and case.request.volume_backed is False:
        yield NOT_VOLUME_BACKED.because()


RULE: Final = RequestRule(90, _check, (NOT_VOLUME_BACKED,))
