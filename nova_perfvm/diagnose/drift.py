# SPDX-License-Identifier: Apache-2.0
"""Find whom Placement has on other child providers than Nova runs them on.

nova-compute chooses NUMA nodes by itself where no scheduler filter has chosen for it,
as on a host that is forced.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nova_perfvm.diagnose.residents import as_enrolled_children, residents_of
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.placement.schemes.residents import Holding
from nova_perfvm.policy import Policy


class Drift(NamedTuple):
    """A server that holds something else of its host's children than it uses.

    :ivar run: what it should hold, by where Nova runs it
    """

    server: Server
    held: Holding
    run: Holding


def drifted(policy: Policy, view: HostView) -> Iterator[Drift]:
    """Yield the servers of an enrolled host that hold other children than they use.

    Those that hold none at all lack something, which is another matter.
    """
    own, scheme, children = as_enrolled_children(policy, view)
    for resident in residents_of(own, view, children):
        run = scheme.run_on(own, children, resident)
        if resident.server and run and resident.held and resident.held != run:
            yield Drift(resident.server, resident.held, run)
