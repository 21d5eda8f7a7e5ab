# SPDX-License-Identifier: Apache-2.0
"""``host list`` and ``host show``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from cliff.lister import Lister
from cliff.show import ShowOne

from nova_perfvm.diagnose.hosts import HostSummary, inventories_of, summarize
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts.snapshot import UNKNOWN
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand, Table
from nova_perfvm.osc.formats.both import Both
from nova_perfvm.osc.snapshot import look_by

# Columns of the list.
_FACTS: Final[dict[str, Callable[[HostSummary], Any]]] = {
    "Host": lambda host: host.view.host,
    "State": lambda host: host.view.state,
    "Mode": lambda host: host.mode,
    "NUMA Nodes": lambda host: (
        host.view.compute.shape and host.view.compute.shape.cells
    ),
    "Slots": lambda host: host.slots,
    "Slots Used": lambda host: host.used,
    "Classes": lambda host: ", ".join(host.classes),
    "Aggregates": lambda host: ", ".join(each.name for each in host.view.aggregates),
}
# A value that no API shows.
_UNKNOWN = Both("-", None)
Row = tuple[tuple[str, ...], tuple[Any, ...]]


class SummarizingCommand(PolicyCommand):
    """A command that shows modes, slots and classes of compute hosts."""

    auth_required = True

    def summaries(self, parsed_args: argparse.Namespace) -> list[HostSummary]:
        policy = self.policy(parsed_args)
        return summarize(policy, look_by(self, parsed_args, policy))


class ListHosts(SummarizingCommand, Lister):
    """List the compute hosts with their modes and slots.

    Exits with 1 if Placement lacks the provider of a host.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        found = self.summaries(parsed_args)
        for host in found:
            if host.mode == UNKNOWN:
                self.exit_status = 1
                self.warn(_no_provider(host))
        return tuple(_FACTS), [tuple(_facts(host).values()) for host in found]


class ShowHost(SummarizingCommand, ShowOne):
    """Show a compute host: mode, slots, classes, traits, inventories and servers."""

    arguments = (opt.option("host HOST", "compute host, by name"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Row:
        name = parsed_args.host
        everything = self.summaries(parsed_args)
        found = [
            host
            for host in everything
            if name in {host.view.host, host.view.compute.node}
        ]
        if not found:
            raise PerfVMError(
                unknown_host(name, (host.view.host for host in everything))
            )
        host, *others = found
        if others:
            nodes = ", ".join(host.view.compute.node for host in found)
            raise PerfVMError(
                f"{name} stands for several compute nodes: name one of {nodes}"
            )
        if host.mode == UNKNOWN:
            raise PerfVMError(_no_provider(host))
        used = inventories_of(host.view).items()
        columns = _facts(host).items()
        facts = {title.lower().replace(" ", "_"): fact for title, fact in columns} | {
            "node": host.view.compute.node,
            "shape": str(host.view.compute.shape or ""),
            "traits": "\n".join(sorted(host.view.root.traits)),
            "inventories": "\n".join(f"{name}: {text}" for name, text in used),
            "servers": "\n".join(map(str, host.view.servers)),
        }
        return tuple(facts), tuple(facts.values())


def _facts(host: HostSummary) -> dict[str, Any]:
    """Return the host's cells of the list, by column."""
    facts = {title: fact(host) for title, fact in _FACTS.items()}
    return {k: _UNKNOWN if v is None else v for k, v in facts.items()}


def _no_provider(host: HostSummary) -> str:
    return (
        f"Placement has no provider of {host.view.host}: is its nova-compute up, and "
        "has it reported since the service was created?"
    )
