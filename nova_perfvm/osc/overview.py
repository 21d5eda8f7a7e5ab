# SPDX-License-Identifier: Apache-2.0
"""``map`` and ``metrics``: slots, audit and verdicts of hosts in one overview."""

from __future__ import annotations

import argparse

from nova_perfvm.diagnose import cloud_map, overview
from nova_perfvm.diagnose.formats import cloud_map as page
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.formats import monitoring
from nova_perfvm.osc.judging import LookingCommand
from nova_perfvm.osc.snapshot import seen_in


class OverviewCommand(LookingCommand):
    """A command that writes an overview of a cloud or a snapshot."""

    arguments = (
        opt.option(
            "--flavor FLAVOR",
            "judge hosts for this flavor of the cloud, may be repeated (default: "
            "the policy's flavors)",
            action="append",
            dest="flavors",
        ),
        opt.OUTPUT,
    )

    def render(self, found: Overview) -> str:
        """Return the overview as text."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        policy, settings, snapshot = self.observed(parsed_args)
        found = overview.look(
            policy,
            snapshot,
            settings,
            flavors=parsed_args.flavors,
        )
        self.write(self.render(found), parsed_args.output)
        if parsed_args.output is not None:
            self.write(f"{parsed_args.output}: {seen_in(snapshot)}\n")


class DrawMap(OverviewCommand):
    """Draw hosts with their NUMA nodes, CPUs and servers as an HTML page.

    The page also shows the audit's findings, and for each flavor the hosts that would
    take a new server, and why the other hosts would not.
    """

    def render(self, found: Overview) -> str:
        return page.html(cloud_map.document(found))


class WriteMetrics(OverviewCommand):
    """Write slots, findings of the audit and refusals by reason for Prometheus.

    The text is for node_exporter's textfile collector.
    """

    def render(self, found: Overview) -> str:
        return monitoring.overview(found)
