# SPDX-License-Identifier: Apache-2.0
"""Find whom Placement has on other child providers than Nova runs them on.

nova-compute chooses NUMA nodes by itself where no scheduler filter has chosen for it,
as on a host that is forced.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.diagnose.residents import as_enrolled_children, residents_of
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, child_name
from nova_perfvm.placement.schemes.residents import Holding, Resident
from nova_perfvm.policy import Policy


class Drift(NamedTuple):
    """A server that holds something else of its host's children than it uses.

    :ivar run: what it should hold, by where Nova runs it
    """

    server: Server
    held: Holding
    run: Holding


def away(policy: Policy, view: HostView) -> Iterator[Resident]:
    """Yield what holds children of an enrolled host and is no server, as migrations."""
    own, _, children = as_enrolled_children(policy, view)
    for resident in residents_of(own, view, children):
        if resident.held and resident.consumer not in view.cloud.server_by_id:
            yield resident


def kept_for_others(view: HostView) -> frozenset[str]:
    """Return the children of whose nodes Nova keeps CPUs for servers elsewhere.

    It counts as pinned what a server may come back to when its resize is reverted;
    its database alone tells which CPUs are.
    """
    owned = {cpu for server in view.servers for cpu in server.pinned_cpus}
    return frozenset(
        child_name(view.root.name, f"{const.CELL_SUFFIX}{cell.id}")
        for cell in view.facts.cells
        if cell.pinned_cpus - owned
    )


def drifted(policy: Policy, view: HostView) -> Iterator[Drift]:
    """Yield the servers of an enrolled host that hold other children than they use.

    Those that hold none at all lack something, which is another matter.
    """
    own, scheme, children = as_enrolled_children(policy, view)
    for resident in residents_of(own, view, children):
        run = scheme.run_on(own, children, resident)
        if resident.server and run and resident.held and resident.held != run:
            yield Drift(resident.server, resident.held, run)
