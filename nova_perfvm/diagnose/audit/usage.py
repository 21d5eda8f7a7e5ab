# SPDX-License-Identifier: Apache-2.0
"""Check that Placement grants no more than its inventories have."""

from collections.abc import Iterator

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding


def check(subject: Subject) -> Iterator[Finding]:
    """List the inventories with more allocated than their capacity."""
    for provider in subject.snapshot.providers:
        for name, used, capacity in provider.overused():
            yield Finding.of(
                codes.OVER_INVENTORY,
                provider.name,
                f"{used} of {capacity} {name} allocated",
                f"openstack resource provider show --allocations {provider.uuid}",
            )
