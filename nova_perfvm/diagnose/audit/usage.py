# SPDX-License-Identifier: Apache-2.0
"""Whether Placement has granted more than there is."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding


class Usage(NamedTuple):
    """One inventory of a resource provider.

    :ivar capacity: (total - reserved) x allocation_ratio
    """

    provider: str
    resource_class: str
    capacity: int
    used: int
    uuid: str = "PROVIDER"


def check(subject: Subject) -> Iterator[Finding]:
    """List what is allocated too much."""
    yield from check_usage(
        Usage(provider.name, name, capacity, used, provider.uuid)
        for provider in subject.snapshot.providers
        for name, used, capacity in provider.overused()
    )


def check_usage(usages: Iterable[Usage]) -> list[Finding]:
    """List the inventories of which more is allocated than there is."""
    return [
        Finding.of(
            codes.OVER_INVENTORY,
            usage.provider,
            f"{usage.used} of {usage.capacity} {usage.resource_class} allocated",
            f"openstack resource provider show --allocations {usage.uuid}",
        )
        for usage in usages
        if usage.used > usage.capacity
    ]
