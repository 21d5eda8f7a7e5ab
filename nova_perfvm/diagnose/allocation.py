# SPDX-License-Identifier: Apache-2.0
"""Compute the allocation that a server should have if Placement has lost it.

``nova-manage placement heal_allocations`` cannot restore units: it requests all
resources of the flavor from the host's root provider, but only its children have units.
"""

from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Server

# Extra specs that request resources of providers which Nova chooses.
_ELSEWHERE: Final = (
    "accel:device_profile",
    "pci_passthrough:alias",
)


class LostError(PerfVMError):
    """A lost allocation cannot be computed from the server's flavor."""


def root_amounts(view: HostView, server: Server) -> dict[str, int]:
    """Return the amounts that a server takes of its host's root provider (no units).

    The amounts follow from the flavor embedded in the server, as nova-scheduler would
    request it: VCPU also for a pinned server if the host has no PCPU.

    :raises LostError: when an amount cannot be known, or the root provider lacks a
        resource class
    """
    request = request_for(server.embedded, volume_backed=server.volume_backed)
    unknown = [key for key in request.unseen if key in _ELSEWHERE]
    if server.pinned is not None and server.pinned != (request.fallback is not None):
        # The image decided the CPU policy, and its properties at boot are not recorded.
        unknown.append(const.CPU_POLICY)
    if unknown:
        raise LostError(
            f"has no allocation of {view.host}, and the amounts for "
            f"{', '.join(unknown)} do not follow from the flavor: migrate the VM"
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
