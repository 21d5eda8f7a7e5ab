# SPDX-License-Identifier: Apache-2.0
"""Compute the allocation that a server should have, where Placement lost it.

``nova-manage placement heal_allocations`` asks the host's own provider for all
that the flavor asks for, and so for units, which only its children have.
"""

from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.demand import request_for
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server

# What a flavor takes besides, of providers that Nova chooses.
_ELSEWHERE: Final = (
    "accel:device_profile",
    "pci_passthrough:alias",
)


class LostError(PerfVMError):
    """An allocation that cannot be made again as it was."""


def root_amounts(view: HostView, server: Server) -> dict[str, int]:
    """Return what a server takes of its host's own provider: all but units.

    By the flavor that is embedded in it, as nova-scheduler would ask for it:
    VCPU also for a server with CPUs of its own, where the host has no PCPU.

    :raises LostError: when the host's own provider does not have all of it, or it
        cannot be known
    """
    request = request_for(server.embedded, volume_backed=server.volume_backed)
    unknown = [key for key in request.unseen if key in _ELSEWHERE]
    if server.pinned is not None and server.pinned != (request.fallback is not None):
        # Its image says how its CPUs are, and what that said then nobody knows.
        unknown.append(const.CPU_POLICY)
    if unknown:
        raise LostError(
            f"has no allocation of {view.host}, and what it takes for "
            f"{', '.join(unknown)} its flavor does not tell: migrate it"
        )
    demand = request.demand
    if request.fallback is not None and view.root.mode == "open":
        demand = request.fallback
    amounts: dict[str, int] = {}
    for group in demand.groups:
        for name, amount in group.resources.items():
            if name not in const.CHILD_CLASSES:
                amounts[name] = amounts.get(name, 0) + amount
    absent = sorted(amounts.keys() - view.root.inventories.keys())
    if absent:
        raise LostError(
            f"has no allocation of {view.host}, whose own provider has no "
            f"{', '.join(absent)}: migrate it, or give it one by openstack resource "
            "provider allocation set"
        )
    return amounts
