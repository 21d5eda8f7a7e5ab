# SPDX-License-Identifier: Apache-2.0
"""``flavor sync``, ``image sync`` and ``limit sync``."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable
from typing import Any

from cliff.lister import Lister

from nova_perfvm.changes.images import tag_of, tagged_properties
from nova_perfvm.changes.steps import Change, Left, Plan
from nova_perfvm.cloud import flavors, images, limits, sync
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.cloud.sync import Failed
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.changing import ChangingCommand
from nova_perfvm.osc.flavor import FLAVOR_ARGUMENTS, flavors_of
from nova_perfvm.osc.limit import LIMIT_ARGUMENTS, limits_from
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.osc.recording import RecordingCommand

_COLUMNS = ("Action", "Type", "Name", "Details")
_MAX_WIDTH = 60


class SyncCommand(RecordingCommand, ChangingCommand, Lister):
    """A command that lists its changes, asks, and makes them."""

    # Makes one change.
    apply: sync.Apply

    def plan(self, parsed_args: argparse.Namespace) -> Plan:
        """Compare the cloud with the policy, and return the changes needed."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Plan, ask, and change; return the changes made, or with --dry-run planned."""
        planned = self.plan(parsed_args)
        if planned.refusals:
            raise RefusedError(planned.refusals)
        failed: list[Failed] = []
        agreed = self._agreed(parsed_args, planned.changes)
        self.record_for(parsed_args, planned.changes, agreed=agreed)
        if agreed:
            numbers, total = itertools.count(1), len(planned.changes)
            with ProgressLine() as line:
                failed = sync.make(
                    self.cloud,
                    self.apply,
                    planned.changes,
                    lambda change: line(str(change)[:_MAX_WIDTH], next(numbers), total),
                )
        for one in failed:
            if one.asked:
                self.exit_status = 1
                self.tell(f"{one.change}: {one.why}")
        steps = (*planned.changes, *planned.left)
        return _COLUMNS, [_row(step, failed) for step in steps]

    def _agreed(
        self, parsed_args: argparse.Namespace, changes: tuple[Change, ...]
    ) -> bool:
        if changes and parsed_args.dry_run:
            # The table lists the changes.
            return False
        agreed = self.agreed(parsed_args, [f"would {change}" for change in changes])
        if changes and not agreed:
            self.say("nothing was changed; these changes are needed:")
        return agreed


class SyncFlavors(SyncCommand):
    """Create and update the policy's flavors in the cloud; leave all others alone.

    Lists the flavors created and left, and the extra specs set and unset.
    """

    arguments = (
        *FLAVOR_ARGUMENTS,
        opt.repeated(
            "--adopt FLAVOR",
            "take over the flavor of this name, which carries no mark of a "
            "policy; may be repeated",
        ),
    )

    apply = staticmethod(flavors.apply)

    def plan(self, parsed_args: argparse.Namespace) -> Plan:
        policy = self.checked_policy(parsed_args)
        chosen = flavors_of(policy, parsed_args)
        return flavors.plan(self.cloud, chosen, policy=policy, adopt=parsed_args.adopt)


class SyncImages(SyncCommand):
    """Set the policy's properties on images; leave all other properties alone.

    The images are those named now, and those named in an earlier run, which
    tagged them.
    """

    arguments = (
        opt.option(
            "images IMAGE",
            "name or ID (default: the images tagged by earlier runs)",
            nargs="*",
        ),
        opt.vm_class(),
    )

    apply = staticmethod(images.apply)

    def plan(self, parsed_args: argparse.Namespace) -> Plan:
        policy = self.checked_policy(parsed_args)
        desired = tagged_properties(policy)
        tag = tag_of(parsed_args.class_name)
        if parsed_args.class_name is not None:
            policy.get_class(parsed_args.class_name)
            desired = {tag: desired[tag]} if not parsed_args.images else desired
        return images.plan(self.cloud, desired, tag, parsed_args.images)


class SyncLimits(SyncCommand):
    """Limit in Keystone how many high-performance VMs projects may have.

    A class without --default keeps its limit, or gets an unlimited one.
    """

    arguments = (
        *LIMIT_ARGUMENTS,
        opt.option(
            "--region ID", "region of Nova's endpoint (default: its only region)"
        ),
    )

    apply = staticmethod(limits.apply)

    def plan(self, parsed_args: argparse.Namespace) -> Plan:
        wanted = limits_from(self.checked_policy(parsed_args), parsed_args)
        return limits.plan(self.cloud, wanted, parsed_args.region)


def _row(step: Any, failed: Iterable[Failed]) -> tuple[str, ...]:
    for one in failed:
        if one.change == step:
            return "failed" if one.asked else Left.action, step.kind, step.name, one.why
    return step.action, step.kind, step.name, step.detail
