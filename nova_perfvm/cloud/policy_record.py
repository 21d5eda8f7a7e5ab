# SPDX-License-Identifier: Apache-2.0
"""Record on a cloud which policy is applied to it, and read the record."""

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
# Nova's limit for a value of an aggregate's metadata.
_MOST_CHARACTERS: Final = 255


def read(api: API) -> RecordedPolicy | None:
    """Return the recorded policy; None if no policy is recorded."""
    return recorded(answers.aggregates(api))


def record(
    api: API, digest: str, name: str, seen: RecordedPolicy | None = None
) -> RecordedPolicy:
    """Record a policy in place of `seen`; return the policy recorded afterwards.

    If somebody has recorded a third policy meanwhile, that one stays and is returned.

    :param name: of the policy's file; characters that Nova cannot store are replaced
    :param seen: the record to replace, as it was read; None if there was none
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
            # A concurrent client may have written its own policy as well: one of the
            # two stays.
            there = read(api)
            if there is not None:
                return there
            continue
        with contextlib.suppress(ConflictError):
            Applier(api).apply(CreateAggregate(const.POLICY_AGGREGATE))
    raise CloudError(
        f"aggregate {const.POLICY_AGGREGATE} was deleted meanwhile: run this again"
    )
