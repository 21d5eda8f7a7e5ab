# SPDX-License-Identifier: Apache-2.0
"""``host list`` and ``host show``."""

from __future__ import annotations

import argparse
from typing import Any

from cliff.lister import Lister
from cliff.show import ShowOne

from nova_perfvm.diagnose.hosts import UNKNOWN, HostSummary, host_slots, summarize
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import PolicyCommand, argument, flag
from nova_perfvm.osc.checks import Table
from nova_perfvm.osc.snapshot import take_hosts
from nova_perfvm.policy import Policy

_COLUMNS = (
    *("Host", "State", "Mode", "Cells", "Slots", "Slots Used", "Classes"),
    "Aggregates",
)
Row = tuple[tuple[str, ...], tuple[Any, ...]]
_LONG = ("Shape", "Servers", "Traits", "Inventories")


class ListHosts(PolicyCommand, Lister):
    """List the compute hosts with their modes and slots.

    Exits with 1 if Placement knows nothing of one of them.
    """

    auth_required = True
    arguments = (
        flag("--long", "list shapes, numbers of servers, traits and inventories too"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Look at the cloud and list its hosts."""
        found = summarize(self.policy(parsed_args), take_hosts(self.app))
        for host in found:
            if host.mode == UNKNOWN:
                self.exit_status = 1
                self.warn(_no_provider(host))
        columns = _COLUMNS + (_LONG if parsed_args.long else ())
        return columns, [_row(host)[: len(columns)] for host in found]


class ShowHost(PolicyCommand, ShowOne):
    """Show what a compute host is to the policy."""

    auth_required = True
    arguments = (argument("host", metavar="HOST", help="compute host, by name"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Row:
        """Look at the cloud and show one host."""
        policy = self.policy(parsed_args)
        name = parsed_args.host
        found = [
            host
            for host in summarize(policy, take_hosts(self.app))
            if name in {host.host, host.node}
        ]
        if len(found) != 1:
            nodes = ", ".join(host.node for host in found)
            raise PerfVMError(
                f"{name} stands for several compute nodes: name one of {nodes}"
                if found
                else f"no compute host {name}: see openstack perfvm host list"
            )
        if found[0].mode == UNKNOWN:
            raise PerfVMError(_no_provider(found[0]))
        return _shown(policy, found[0])


def _row(host: HostSummary) -> tuple[Any, ...]:
    return (
        host.host,
        host.state,
        host.mode,
        host.cells,
        host.slots,
        host.used,
        ", ".join(host.classes),
        ", ".join(host.aggregates),
        str(host.shape or ""),
        len(host.servers),
        ", ".join(host.traits),
        _lines(host),
    )


def _shown(policy: Policy, host: HostSummary) -> Row:
    fields = {
        "host": host.host,
        "node": host.node,
        "state": host.state,
        "mode": host.mode,
        "shape": str(host.shape or ""),
        "cells": host.cells,
        "slots": host.slots,
        "slots_used": host.used,
        "slots_of_shape": host_slots(policy, host.shape) if host.shape else None,
        "classes": ", ".join(host.classes),
        "aggregates": ", ".join(host.aggregates),
        "traits": "\n".join(host.traits),
        "inventories": _lines(host),
        "servers": "\n".join(host.servers),
    }
    return tuple(fields), tuple(fields.values())


def _lines(host: HostSummary) -> str:
    return "\n".join(f"{name}: {text}" for name, text in host.inventories.items())


def _no_provider(host: HostSummary) -> str:
    return (
        f"Placement has no provider of {host.host}: is its nova-compute up, and has it "
        "reported since the service was created?"
    )
