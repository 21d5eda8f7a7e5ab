# SPDX-License-Identifier: Apache-2.0
"""What a server should have been allocated, where Placement lost it.

``nova-manage placement heal_allocations`` asks the host's own provider for all
that the flavor asks for, and so for units, which only its children have.
"""

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.demand import request_for
from nova_perfvm.facts.elastic_host import ElasticHost
from nova_perfvm.facts.snapshot import Server


class LostError(PerfVMError):
    """An allocation that cannot be made again as it was."""


def root_amounts(view: ElasticHost, server: Server) -> dict[str, int]:
    """Return what a server takes of its host's own provider: all but units.

    By the flavor that is embedded in it, as nova-scheduler would ask for it:
    VCPU also for a server with CPUs of its own, where the host has no PCPU.
    Only of a flavor's root disk is anything known.

    :raises LostError: when the host's own provider does not have all of it
    """
    request = request_for(server.embedded, volume_backed=server.volume_backed)
    demand = request.demand
    if request.fallback is not None and view.root.mode == "open":
        demand = request.fallback
    amounts: dict[str, int] = {}
    for group in demand.groups:
        for name, amount in group.resources.items():
            if name != const.RC_UNIT:
                amounts[name] = amounts.get(name, 0) + amount
    absent = sorted(amounts.keys() - view.root.inventories.keys())
    if absent:
        raise LostError(
            f"has no allocation of {view.host}, whose own provider has no "
            f"{', '.join(absent)}: migrate it, or give it one by openstack resource "
            "provider allocation set"
        )
    return amounts
