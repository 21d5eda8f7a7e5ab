# SPDX-License-Identifier: Apache-2.0
"""The policy that a cloud was last changed by, as recorded in the cloud.

The metadata of an aggregate without hosts has the policy's digest.  As Nova considers
an aggregate for its hosts only, this aggregate has no effect on scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot.resources import Aggregate

# Length of the digests in messages, in hex digits.
_DIGITS = 8


@dataclass(frozen=True)
class RecordedPolicy:
    """A policy as recorded in a cloud.

    :ivar digest: SHA-256 of the policy's meaning, as nova-scheduler logs it
    :ivar name: name of the policy's file
    :ivar at: time of the record, ISO 8601, UTC
    """

    digest: str
    name: str = ""
    at: str = ""

    def __str__(self) -> str:
        """Return name, short digest and time."""
        where = f"sha256 {short_digest(self.digest)}"
        return f"{self.name or 'a policy'} ({where}, recorded {self.at or 'some time'})"

    def as_metadata(self) -> dict[str, str]:
        """Return the metadata that records the policy in an aggregate."""
        return {
            const.POLICY_KEY: self.digest,
            const.POLICY_NAME_KEY: self.name,
            const.POLICY_AT_KEY: self.at,
        }


def short_digest(digest: str) -> str:
    """Return the first digits of a policy's digest, for messages."""
    return digest[:_DIGITS]


def recorded(aggregates: Iterable[Aggregate]) -> RecordedPolicy | None:
    """Return the policy recorded in a cloud's aggregates, or None."""
    for aggregate in aggregates:
        found = aggregate.metadata
        if aggregate.name == const.POLICY_AGGREGATE and found.get(const.POLICY_KEY):
            return RecordedPolicy(
                digest=found[const.POLICY_KEY],
                name=found.get(const.POLICY_NAME_KEY, ""),
                at=found.get(const.POLICY_AT_KEY, ""),
            )
    return None
