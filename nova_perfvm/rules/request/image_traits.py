# SPDX-License-Identifier: Apache-2.0
"""An image requires no trait of nova_perfvm.

Nova adds an image's traits to the flavor's, and tenants write images: a trait of the
project would open elastic hosts to VMs without the resources of the contract.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.placement.schemes import is_ours
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

IMAGE_TRAIT: Final = Refusal(
    "request.image_trait",
    words=lambda d: (
        f"the image requires {', '.join(d['found'])}; only flavors may require it"
    ),
    meaning=(
        "the image, or the volume's copy of its properties, requires a trait of the "
        "project; only flavors may require these"
    ),
    advice=(
        "``openstack image unset --property trait:CUSTOM_PERFVM_...``; a server keeps "
        "the old image's traits until it is rebuilt with another image"
    ),
    audit=findings.IMAGE_TRAIT,
    remedy="rebuild",
)


def _check(case: RequestCase[VMClass | None]) -> Iterator[Reason]:
    """Yield one reason, which names all traits of nova_perfvm on the image."""
    found = sorted(
        t.name for t in case.request.traits if t.source == "image" and is_ours(t.name)
    )
    if found:
        yield IMAGE_TRAIT.because(found=found)


RULE: Final = RequestRule(110, _check, (IMAGE_TRAIT,), claimed=False, image=True)
