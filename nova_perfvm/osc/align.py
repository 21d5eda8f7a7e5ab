# SPDX-License-Identifier: Apache-2.0
"""``perfvm align``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from nova_perfvm.changes.align import plan_align
from nova_perfvm.cloud import answers, converge
from nova_perfvm.cloud.allocate import migrating
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.changing import HostsCommand


class Align(HostsCommand):
    """Make VMs' allocations name the NUMA nodes on which Nova runs the VMs.

    Nova runs a VM that was forced onto a host on nodes of Nova's choice, which may
    differ from the nodes of its allocation. No VM is moved: one request changes the
    allocations of all VMs of a host. Exits with 1 if VMs cannot be aligned now, and
    names them.
    """

    ended = "aligned"
    arguments = (
        opt.option(
            "hosts HOST",
            "compute hosts, by name (default: all that are enrolled)",
            nargs="*",
        ),
    )

    def names(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """Return the named hosts, or else all hosts in isolated aggregates."""
        isolating = (a for a in answers.aggregates(self.cloud) if a.isolates)
        members = {host for aggregate in isolating for host in aggregate.hosts}
        return parsed_args.hosts or sorted(members)

    def planner(self, parsed_args: argparse.Namespace) -> converge.Planner:
        policy = self.checked_policy(parsed_args)
        moving = partial(migrating, self.cloud)
        return lambda view: plan_align(policy, view, moving)

    def say_what_stays(self) -> None:
        """Print nothing: align detaches no child provider."""
