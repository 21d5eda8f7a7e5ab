# SPDX-License-Identifier: Apache-2.0
"""Record on a cloud the policy by which it is changed, and read it back."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import CreateAggregate
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, ConflictError
from nova_perfvm.facts.recorded_policy import RecordedPolicy, recorded

_TRIES: Final = 3
# Of a value of an aggregate's metadata.
_MOST_CHARACTERS: Final = 255


def read(api: API) -> RecordedPolicy | None:
    """Return the policy that is recorded, None if none is.

    :raises CloudError: when a request fails
    """
    return recorded(answers.aggregates(api))


def record(
    api: API, digest: str, name: str, seen: RecordedPolicy | None = None
) -> RecordedPolicy:
    """Record a policy in place of another one; return which one is recorded then.

    That is a third one if somebody has recorded it meanwhile: it stays.

    :param name: of the policy's file; what Nova cannot keep of it is left out
    :param seen: the one that is to be replaced, as it was seen
    :raises CloudError: when a request fails
    """
    name = name.encode("ascii", "replace").decode()[-_MOST_CHARACTERS:]
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    policy = RecordedPolicy(digest, name, now)
    for _ in range(_TRIES):
        aggregates = answers.aggregates(api)
        found = next((a for a in aggregates if a.name == const.POLICY_AGGREGATE), None)
        if found is not None:
            there = recorded(aggregates)
            if there is not None and (there.digest == policy.digest or there != seen):
                return there
            action = {"set_metadata": {"metadata": policy.as_metadata()}}
            api.nova("POST", f"/os-aggregates/{found.id}/action", action)
            # Who came at the same moment found room for its own, too: one stays.
            there = read(api)
            if there is not None:
                return there
            continue
        with contextlib.suppress(ConflictError):
            Applier(api).apply(CreateAggregate(const.POLICY_AGGREGATE))
    raise CloudError(
        f"aggregate {const.POLICY_AGGREGATE} does not stay: run this again"
    )
