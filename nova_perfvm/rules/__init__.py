# SPDX-License-Identifier: Apache-2.0
"""The rules: one decision for the scheduler, the simulator and the audit.

Pure functions of policy and facts; each rule is stated once and refuses with
its own reason code (see :mod:`nova_perfvm.constants`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm.facts import Decision
from nova_perfvm.rules.host import check_host
from nova_perfvm.rules.request import (
    check_image,
    check_request,
    is_former_size,
    resolve_class,
)
from nova_perfvm.rules.slots import CellRoom, cell_room, host_mode, host_slots
from nova_perfvm.rules.words import describe, describe_cells

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, RequestFacts
    from nova_perfvm.policy import Policy

__all__ = [
    "CellRoom",
    "cell_room",
    "check_host",
    "check_image",
    "check_request",
    "decide",
    "describe",
    "describe_cells",
    "host_mode",
    "host_slots",
    "is_former_size",
    "resolve_class",
]


def decide(policy: Policy, request: RequestFacts, host: HostFacts) -> Decision:
    """Return whether a host may take a request, and why not.

    A request that is not of the class it claims is refused everywhere, with
    all that is wrong with it; only then is the host looked at.
    """
    reasons = check_request(policy, request) or check_host(policy, request, host)
    return Decision(not reasons, reasons)
