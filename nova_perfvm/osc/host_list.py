# SPDX-License-Identifier: Apache-2.0
"""``host list`` and ``host show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cliff.lister import Lister
from cliff.show import ShowOne

from nova_perfvm.diagnose.hosts import UNKNOWN, host_slots, summarize
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import policy_argument
from nova_perfvm.osc.output import PrintableCommand
from nova_perfvm.osc.snapshot import take_hosts
from nova_perfvm.policy import loader

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from nova_perfvm.diagnose.hosts import HostSummary
    from nova_perfvm.policy import Policy

_COLUMNS = (
    *("Host", "State", "Mode", "Cells", "Slots", "Slots Used", "Classes"),
    "Aggregates",
)
_LONG = ("Shape", "Servers", "Traits", "Inventories")


class ListHosts(PrintableCommand, Lister):
    """List the compute hosts with their modes and slots.

    Exits with 1 if Placement knows nothing of one of them.
    """

    auth_required = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add ``--policy`` and ``--long``."""
        parser = super().get_parser(prog_name)
        policy_argument(parser)
        parser.add_argument(
            "--long",
            action="store_true",
            help="list shapes, numbers of servers, traits and inventories too",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return 1 for an exit status if something is missing."""
        self._unknown = False
        return super().run(parsed_args) or int(self._unknown)

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]:
        """Look at the cloud and list its hosts."""
        found = summarize(loader.load(parsed_args.policy), take_hosts(self.app))
        for host in found:
            if host.mode == UNKNOWN:
                self._unknown = True
                self.app.stderr.write(f"warning: {_no_provider(host)}\n")
        columns = _COLUMNS + (_LONG if parsed_args.long else ())
        return columns, [_row(host)[: len(columns)] for host in found]


class ShowHost(PrintableCommand, ShowOne):
    """Show what a compute host is to the policy."""

    auth_required = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the host and ``--policy``."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST", help="compute host, by name")
        policy_argument(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Look at the cloud and show one host."""
        policy = loader.load(parsed_args.policy)
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


def _shown(
    policy: Policy, host: HostSummary
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
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
