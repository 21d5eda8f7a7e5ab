# SPDX-License-Identifier: Apache-2.0
"""The question to a dry run of Nova's scheduler, and its answer; JSON in a pipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

# Why nova-scheduler asks no filter about a host: the request names another host, or no
# cell that answers has a compute node of it that nova-compute has reported.
DESTINATION: Final = "destination"
NO_STATE: Final = "no host state"


@dataclass(frozen=True)
class Question:
    """A server to schedule: an existing server or a new one.

    :ivar server: ID of an existing server; empty for a new server
    :ivar flavor: flavor ID of a new server
    :ivar image: image of a new server as ``nova.image.glance`` returns it, with
        ``properties`` and ``status``; None without an image
    :ivar zone: requested availability zone
    :ivar group: ID of the server group of a new server
    :ivar hints: scheduler hints of a new server
    :ivar count: number of equal servers in the request
    :ivar every: whether the filters after the first that refuses a host run, too
    """

    server: str = ""
    flavor: str = ""
    image: Mapping[str, Any] | None = None
    volume_backed: bool = False
    zone: str = ""
    project: str = ""
    group: str = ""
    hints: Mapping[str, list[str]] = field(default_factory=dict)
    count: int = 1
    every: bool = False


class WeigherShare(NamedTuple):
    """One weigher's contribution to the weight of a host."""

    raw: float
    normalised: float
    multiplier: float

    @property
    def points(self) -> float:
        """The contribution to the weight."""
        return self.multiplier * self.normalised


@dataclass(frozen=True)
class SchedulerAnswer:
    """The scheduling of a request by Nova's scheduler.

    :ivar refused: why nova-api, a prefilter or Placement refuses the request itself;
        empty if none does
    :ivar added: prefilters in their order, each with what it added to the request
    :ivar sources: where each field of the RequestSpec is from
    :ivar notes: parts of the request that were not reproduced, limits that cut
        Placement's answer, and why Placement refuses the query
    :ivar offered: for each compute node that Placement offers, by UUID, which parts of
        Nova refuse it: names of filters, DESTINATION or NO_STATE; empty if it passes
    :ivar unseen: names of unreadable Nova cells
    :ivar weighers: names of the weighers, in their order
    :ivar ranked: UUIDs of the hosts that pass, the best first, each with what each
        weigher adds
    :ivar placed: names of the hosts that servers would go to, one after the other
    """

    refused: str = ""
    added: Sequence[tuple[str, Sequence[str]]] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    offered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unseen: Sequence[str] = ()
    weighers: Sequence[str] = ()
    ranked: Sequence[tuple[str, Sequence[WeigherShare]]] = ()
    placed: Sequence[str] = ()

    def dumps(self) -> str:
        """Return the answer as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> SchedulerAnswer:
        """Return the answer from the JSON of :meth:`dumps`."""
        told = json.loads(text)
        ranked = [
            (uuid, [WeigherShare(*one) for one in shares])
            for uuid, shares in told["ranked"]
        ]
        return cls(**told | {"ranked": ranked})
