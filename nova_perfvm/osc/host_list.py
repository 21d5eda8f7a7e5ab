# SPDX-License-Identifier: Apache-2.0
"""``host list`` and ``host show``."""

from __future__ import annotations

import argparse
from typing import Any

from cliff.columns import FormattableColumn
from cliff.lister import Lister
from cliff.show import ShowOne

from nova_perfvm.diagnose.hosts import (
    UNKNOWN,
    HostSummary,
    inventories_of,
    largest_slots_on,
    summarize,
)
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts.recorded_policy import recorded
from nova_perfvm.osc.base import PolicyCommand, Table, argument, flag
from nova_perfvm.osc.snapshot import take_hosts
from nova_perfvm.policy import Policy

_COLUMNS = (
    "Host",
    "State",
    "Mode",
    "NUMA Nodes",
    "Slots",
    "Slots Used",
    "Classes",
    "Aggregates",
)
Row = tuple[tuple[str, ...], tuple[Any, ...]]
_LONG = ("Shape", "Servers", "Traits", "Inventories")


class SummarizingCommand(PolicyCommand):
    """A command that shows what compute hosts are to the policy."""

    auth_required = True

    def summaries(
        self, parsed_args: argparse.Namespace, policy: Policy
    ) -> list[HostSummary]:
        """Look at the cloud; warn where another policy is recorded there."""
        seen = take_hosts(self.app)
        self.compare_policy(parsed_args, policy, recorded(seen.aggregates))
        return summarize(policy, seen)


class Unknown(FormattableColumn[None]):
    """What no API tells: null for programs."""

    def human_readable(self) -> str:
        """Return what a table shows in its place."""
        return "-"


class ListHosts(SummarizingCommand, Lister):
    """List the compute hosts with their modes and slots.

    Exits with 1 if Placement knows nothing of one of them.
    """

    arguments = (
        flag("--long", "list shapes, numbers of servers, traits and inventories too"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Look at the cloud and list its hosts."""
        found = self.summaries(parsed_args, self.policy(parsed_args))
        for host in found:
            if host.mode == UNKNOWN:
                self.exit_status = 1
                self.warn(_no_provider(host))
            _warn(self, host)
        columns = _COLUMNS + (_LONG if parsed_args.long else ())
        return columns, [_row(host, columns) for host in found]


class ShowHost(SummarizingCommand, ShowOne):
    """Show what a compute host is to the policy."""

    arguments = (argument("host", metavar="HOST", help="compute host, by name"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Row:
        """Look at the cloud and show one host."""
        policy = self.policy(parsed_args)
        name = parsed_args.host
        everything = self.summaries(parsed_args, policy)
        found = [
            host
            for host in everything
            if name in {host.view.host, host.view.compute.node}
        ]
        if len(found) != 1:
            nodes = ", ".join(host.view.compute.node for host in found)
            raise PerfVMError(
                f"{name} stands for several compute nodes: name one of {nodes}"
                if found
                else unknown_host(name, (host.view.host for host in everything))
            )
        if found[0].mode == UNKNOWN:
            raise PerfVMError(_no_provider(found[0]))
        _warn(self, found[0])
        facts = _facts(found[0])
        shape = found[0].view.compute.shape
        if shape:
            facts["slots_of_shape"] = largest_slots_on(policy, shape)
        return tuple(facts), tuple(_cell(value, "\n") for value in facts.values())


def _warn(command: PolicyCommand, host: HostSummary) -> None:
    """Say what keeps VMs off a host that its mode lets in, and the remedy."""
    for fault in host.stale_traits:
        command.warn(f"{host.view.host}: {fault.words}: {fault.remedy}")


def _row(host: HostSummary, columns: tuple[str, ...]) -> tuple[Any, ...]:
    facts = _facts(host) | {"servers": len(host.view.servers)}
    values = (facts[title.lower().replace(" ", "_")] for title in columns)
    return tuple(_cell(value, ", ") for value in values)


def _cell(value: Any, between: str) -> Any:
    """Return what a table has of a value.

    :param between: what divides the members of a list
    """
    if value is None:
        return Unknown(None)
    return between.join(value) if isinstance(value, list) else value


def _facts(host: HostSummary) -> dict[str, Any]:
    """Return what is shown of a host, in the order of ``host show``."""
    view, shape = host.view, host.view.compute.shape
    used = inventories_of(view)
    return {
        "host": view.host,
        "node": view.compute.node,
        "state": view.state,
        "mode": host.mode,
        "shape": str(shape or ""),
        "numa_nodes": shape.cells if shape else None,
        "slots": host.slots,
        "slots_used": host.used,
        "slots_of_shape": None,
        "classes": ", ".join(host.classes),
        "aggregates": ", ".join(aggregate.name for aggregate in view.aggregates),
        "traits": sorted(view.root.traits) if view.tree else [],
        "inventories": "\n".join(f"{n}: {text}" for n, text in used.items()),
        "servers": [str(server) for server in view.servers],
    }


def _no_provider(host: HostSummary) -> str:
    return (
        f"Placement has no provider of {host.view.host}: is its nova-compute up, and "
        "has it reported since the service was created?"
    )
