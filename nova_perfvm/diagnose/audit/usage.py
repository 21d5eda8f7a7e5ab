# SPDX-License-Identifier: Apache-2.0
"""Whether Placement has granted more than there is."""

from collections.abc import Iterator

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding


def check(subject: Subject) -> Iterator[Finding]:
    """List what is allocated too much."""
    for provider in subject.snapshot.providers:
        for name, used, capacity in provider.overused():
            yield Finding.of(
                codes.OVER_INVENTORY,
                provider.name,
                f"{used} of {capacity} {name} allocated",
                f"openstack resource provider show --allocations {provider.uuid}",
            )
