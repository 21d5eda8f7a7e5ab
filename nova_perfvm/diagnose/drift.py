# SPDX-License-Identifier: Apache-2.0
"""Find servers that hold other child providers than the NUMA nodes they run on.

nova-compute chooses NUMA nodes by itself if no scheduler filter has chosen nodes, for
example on a forced host.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nova_perfvm.diagnose.residents import as_enrolled_children, residents_of
from nova_perfvm.facts.children import cell_name
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.placement.host_schemes.residents import Holding, Resident
from nova_perfvm.policy import Policy


class Drift(NamedTuple):
    """A server whose allocation on its host's children differs from what it uses.

    :ivar held: the resources of children that it holds, by child
    :ivar run: the resources that it should hold, by the nodes on which Nova runs it
    """

    server: Server
    held: Holding
    run: Holding


def away(policy: Policy, view: HostView) -> Iterator[Resident]:
    """Yield holders of an enrolled host's children that are no servers (migrations)."""
    own, _, children = as_enrolled_children(policy, view)
    for resident in residents_of(own, view, children):
        if resident.held and resident.consumer not in view.cloud.server_by_id:
            yield resident


def kept_for_others(view: HostView) -> frozenset[str]:
    """Return the children of nodes where Nova keeps CPUs for servers elsewhere.

    When a resize is unconfirmed, the server may return: Nova still counts its former
    CPUs as pinned.  Only Nova's database tells which CPUs.
    """
    owned = {cpu for server in view.servers for cpu in server.pinned_cpus}
    return frozenset(
        cell_name(view.root.name, cell.id)
        for cell in view.facts.cells
        if cell.pinned_cpus - owned
    )


def drifted(policy: Policy, view: HostView) -> Iterator[Drift]:
    """Yield the servers of an enrolled host that hold other children than they use.

    Servers that hold no children at all lack units, see :mod:`.residents`.
    """
    own, scheme, children = as_enrolled_children(policy, view)
    for resident in residents_of(own, view, children):
        run = scheme.run_on(own, children, resident)
        if resident.server and run and resident.held and resident.held != run:
            yield Drift(resident.server, resident.held, run)
