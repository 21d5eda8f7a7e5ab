# SPDX-License-Identifier: Apache-2.0
"""Find what the filter would refuse in a running cloud once it enforces a policy.

The answer is by flavor.  Running VMs of a refused flavor stay where they are, but no
such VM comes to a host any more, be it a new one or one that is moved.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nova_perfvm.diagnose.nova_filters.perfvm import rules_against
from nova_perfvm.diagnose.words import words
from nova_perfvm.facts import Reason, RequestCell
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server

if TYPE_CHECKING:
    # The audit asks this file.
    from nova_perfvm.diagnose.audit import Subject


@dataclass(frozen=True)
class RefusedFlavor:
    """A flavor that a policy refuses for one reason.

    :ivar code: of the first reason
    :ivar words: the reason on one of the hosts
    :ivar vms: how many run with it and would not be let onto their own host
    :ivar hosts: how many hosts these VMs are on
    """

    flavor: str
    code: str
    words: str
    vms: int
    hosts: int

    def __str__(self) -> str:
        """Return numbers and reason in one line."""
        return (
            f"running VMs: {self.vms}; hosts that refuse it: {self.hosts}; "
            f"{self.code}: {self.words}"
        )


def refused_flavors(subject: Subject) -> tuple[RefusedFlavor, ...]:
    """Return what would be refused, the flavor of most VMs first."""
    found: dict[tuple[str, str], list[tuple[Reason, str]]] = defaultdict(list)
    for view in subject.views:
        for server in view.servers:
            for reason in _against(subject, server, view)[:1]:
                found[server.flavor, reason.code].append((reason, view.name))
    refused = [
        RefusedFlavor(
            flavor,
            code,
            words(refusals[0][0]),
            vms=len(refusals),
            hosts=len({host for _, host in refusals}),
        )
        for (flavor, code), refusals in found.items()
    ]
    refused.sort(key=lambda one: (-one.vms, one.flavor, one.code))
    return tuple(refused)


def _against(subject: Subject, server: Server, view: HostView) -> tuple[Reason, ...]:
    """Return why a server would not come to its own host, were it not there."""
    if not server.known:
        return ()
    request = subject.requests[server.id]
    if not request.pinned and server.owns_cpus:
        # Nobody looked on which NUMA node it is.
        own = RequestCell(vcpus=0, pcpus=server.vcpus, memory_mb=server.memory_mb)
        request = request._replace(cells=(own,))
    wrong = subject.check_request(request)
    return rules_against(subject.policy, request, view.without([server]), wrong)
