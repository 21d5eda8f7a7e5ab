# SPDX-License-Identifier: Apache-2.0
"""The policy by which a cloud was changed, as the cloud itself keeps it.

An aggregate without hosts has its digest.  Nova asks only the aggregates of a host
about that host, so that this one has no effect on scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot.resources import Aggregate

# Of what people compare.
_DIGITS = 8


@dataclass(frozen=True)
class RecordedPolicy:
    """A policy as it is recorded on a cloud.

    :ivar digest: SHA-256 of its meaning, as nova-scheduler logs it
    :ivar name: of the file that had it
    :ivar at: when it was recorded, ISO 8601, UTC
    """

    digest: str
    name: str = ""
    at: str = ""

    def __str__(self) -> str:
        """Return name, short digest and time."""
        where = f"sha256 {short_digest(self.digest)}"
        return f"{self.name or 'a policy'} ({where}, recorded {self.at or 'some time'})"

    def as_metadata(self) -> dict[str, str]:
        """Return what the aggregate says of it."""
        return {
            const.POLICY_KEY: self.digest,
            const.POLICY_NAME_KEY: self.name,
            const.POLICY_AT_KEY: self.at,
        }


def short_digest(digest: str) -> str:
    """Return as much of a policy's digest as people compare."""
    return digest[:_DIGITS]


def of_metadata(metadata: Mapping[str, str]) -> RecordedPolicy | None:
    """Return what an aggregate's metadata says, None if it says nothing."""
    digest = metadata.get(const.POLICY_KEY)
    if not digest:
        return None
    name, at = (
        metadata.get(k, "") for k in (const.POLICY_NAME_KEY, const.POLICY_AT_KEY)
    )
    return RecordedPolicy(digest, name, at)


def recorded(aggregates: Iterable[Aggregate]) -> RecordedPolicy | None:
    """Return the policy that is recorded on a cloud, if one is."""
    for aggregate in aggregates:
        if aggregate.name == const.POLICY_AGGREGATE:
            return of_metadata(aggregate.metadata)
    return None
