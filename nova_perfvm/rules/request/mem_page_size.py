# SPDX-License-Identifier: Apache-2.0
"""A VM's memory has pages of the size that its class declares."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import PAGE_SIZES_KB, VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

# Largest page size in KiB that counts as "small".  Nova's small page is the host's
# smallest (4 KiB on x86, up to 64 KiB on arm64 and ppc64), large any above.
_SMALL_MAX_KB: Final = 64

MEM_PAGE_SIZE: Final = Refusal(
    "flavor.mem_page_size",
    words=lambda d: (
        f"the class needs hw:mem_page_size={d['expected']}, and neither flavor nor "
        "image asks for it"
    ),
    meaning="neither flavor nor image ask for the class's page size",
    advice="use a generated flavor",
    audit=findings.NOT_OF_CLASS,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    wanted = case.vm_class.mem_page_size
    if wanted is None:
        return
    found = {cell.page_size_kb for cell in case.request.cells} or {None}
    if not all(_is_page_size(wanted, size_kb) for size_kb in found):
        yield MEM_PAGE_SIZE.because(found=sorted(found, key=str), expected=wanted)


def _is_page_size(wanted: str, size_kb: int | None) -> bool:
    """Return whether a request's page size is one that the class declares.

    :param wanted: ``mem_page_size`` of the class
    :param size_kb: see :class:`nova_perfvm.facts.RequestCell`
    """
    if size_kb is None:
        return False
    if wanted == "small":
        return size_kb == const.PAGE_SMALL or 0 < size_kb <= _SMALL_MAX_KB
    if wanted == "large":
        return size_kb == const.PAGE_LARGE or size_kb > _SMALL_MAX_KB
    return size_kb == PAGE_SIZES_KB[wanted]


RULE: Final = RequestRule(70, _check, (MEM_PAGE_SIZE,))
