# SPDX-License-Identifier: Apache-2.0
"""Find what the filter would refuse in a running cloud once it enforces a policy.

The answer is by flavor.  Running VMs of a refused flavor stay where they are, but
neither new nor moved VMs of the flavor find a host.
"""

from collections import defaultdict
from dataclasses import dataclass

from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.nova_filters.perfvm import rules_against
from nova_perfvm.diagnose.words import words
from nova_perfvm.facts import Reason, RequestCell
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server


@dataclass(frozen=True)
class RefusedFlavor:
    """A flavor that a policy refuses for one reason.

    :ivar code: code of the first reason
    :ivar words: the reason on one of the hosts
    :ivar vms: the running VMs with the flavor that would be refused on their own host
    :ivar hosts: number of hosts with VMs of the flavor
    """

    flavor: str
    code: str
    words: str
    vms: int
    hosts: int

    def __str__(self) -> str:
        return (
            f"running VMs: {self.vms}; hosts that refuse it: {self.hosts}; "
            f"{self.code}: {self.words}"
        )


def refused_flavors(subject: Subject) -> tuple[RefusedFlavor, ...]:
    """Return the refused flavors, the flavor with the most VMs first."""
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
    """Return why a server would be refused on its own host if it came there now."""
    if not server.known:
        return ()
    request = subject.requests[server.id]
    if not request.pinned and server.owns_cpus:
        # The server's NUMA nodes were not read: one node is assumed.
        own = RequestCell(vcpus=0, pcpus=server.vcpus, memory_mb=server.memory_mb)
        request = request._replace(cells=(own,))
    wrong = subject.check_request(request)
    return rules_against(subject.policy, request, view.without([server]), wrong)
