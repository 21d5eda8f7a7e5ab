# SPDX-License-Identifier: Apache-2.0
"""``flavor sync`` and ``image sync``: what is there is made what the policy says."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from cliff.lister import Lister

from nova_perfvm.changes.images import tag_of, tagged_properties
from nova_perfvm.changes.steps import Left
from nova_perfvm.cloud import flavors, images
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import (
    ask,
    changing_arguments,
    class_argument,
    cloud_of,
    flavor_arguments,
    flavors_of,
    names_of,
    policy_argument,
)
from nova_perfvm.osc.output import PrintableCommand
from nova_perfvm.osc.snapshot import ProgressLine
from nova_perfvm.policy import loader

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping

    from nova_perfvm.changes.steps import Change, Plan

    # Carries a plan out, and tells of each change before; may return what was
    # refused, by ID, and is left.
    Sync = Callable[[Callable[[Change], None]], Mapping[str, str] | None]

_COLUMNS = ("Action", "Type", "Name", "Details")
_MAX_WIDTH = 60


class SyncCommand(PrintableCommand, Lister):
    """A command that lists its changes, asks, and makes them."""

    auth_required = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add ``--policy``, ``--dry-run`` and ``--yes``."""
        parser = super().get_parser(prog_name)
        policy_argument(parser)
        changing_arguments(parser)
        return parser

    def prepare(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Callable[[], Plan], Sync]:
        """Return what makes the plan, and what carries one out."""
        raise NotImplementedError

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[str, ...]]]:
        """Plan, ask, and change; return what was changed, or would be."""
        stderr = self.app.stderr
        plan, sync = self.prepare(parsed_args)
        planned = plan()
        if planned.refusals:
            raise RefusedError(planned.refusals)
        if not planned.changes:
            stderr.write("nothing to do\n")
        refused: Mapping[str, str] = {}
        if planned.changes and not parsed_args.dry_run:
            refused = self._carry_out(parsed_args, planned, sync)
        steps = (*planned.changes, *planned.left)
        return _COLUMNS, [_row(step, refused) for step in steps]

    def _carry_out(
        self,
        parsed_args: argparse.Namespace,
        planned: Plan,
        sync: Sync,
    ) -> Mapping[str, str]:
        stderr = self.app.stderr
        if not parsed_args.yes:
            stderr.write("".join(f"would {change}\n" for change in planned.changes))
            if not ask(stderr):
                stderr.write("nothing was changed; what would be:\n")
                return {}
        with Progress(len(planned.changes)) as progress:
            return sync(progress.step) or {}


class Progress:
    """What is being changed, on a line of standard error if that is a terminal.

    :param total: how many changes there are
    """

    def __init__(self, total: int) -> None:
        """Show nothing yet."""
        self._line = ProgressLine() if sys.stderr.isatty() else None
        self._total = total
        self._begun = 0

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the line."""
        if self._line:
            self._line.clear()

    def step(self, change: Change) -> None:
        """Return which change is being made."""
        self._begun += 1
        if self._line:
            self._line(str(change)[:_MAX_WIDTH], self._begun, self._total)


class SyncFlavors(SyncCommand):
    """Make the cloud's flavors those of the policy; leave all others alone.

    Lists what is created, set, unset and left.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what selects flavors, and what may be done to them."""
        parser = super().get_parser(prog_name)
        flavor_arguments(parser)
        parser.add_argument(
            "--adopt",
            action="append",
            default=[],
            metavar="FLAVOR",
            help="take over a flavor of this name that does not say it is of a policy; "
            "may be repeated",
        )
        parser.add_argument(
            "--recreate",
            action="store_true",
            help="delete flavors of another size that no server uses, and create them "
            "anew with the same ID",
        )
        return parser

    def prepare(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Callable[[], Plan], Sync]:
        """Return what makes the plan, and what carries one out."""
        cloud = cloud_of(self.app)
        policy = loader.load(parsed_args.policy)
        desired = flavors_of(policy, parsed_args)
        options: dict[str, Any] = {
            "adopt": parsed_args.adopt,
            "recreate": parsed_args.recreate,
            "listed": names_of(policy, parsed_args.prefix),
        }
        return (
            partial(flavors.plan, cloud, desired, **options),
            lambda tell: flavors.sync(cloud, desired, tell, **options),
        )


class SyncImages(SyncCommand):
    """Set the policy's properties on images; leave all other properties alone.

    On the images that are named, and on those that were named once: they have
    a tag since.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the images and the class."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "images",
            nargs="*",
            metavar="IMAGE",
            help="name or ID (default: the images that were named before)",
        )
        class_argument(parser)
        return parser

    def prepare(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Callable[[], Plan], Sync]:
        """Return what makes the plan, and what carries one out."""
        cloud = cloud_of(self.app)
        policy = loader.load(parsed_args.policy)
        desired = tagged_properties(policy, extensions.load())
        tag = tag_of(parsed_args.class_name)
        if parsed_args.class_name is not None:
            policy.get_class(parsed_args.class_name)
            desired = {tag: desired[tag]} if not parsed_args.images else desired
        chosen = (cloud, desired, tag, parsed_args.images)
        return partial(images.plan, *chosen), partial(images.sync, *chosen)


def _row(step: Any, refused: Mapping[str, str]) -> tuple[str, ...]:
    why = refused.get(getattr(step, "id", ""))
    if why is not None:
        step = Left(step.kind, step.name, f"a tenant's: {why}")
    found: Change | Left = step
    return tuple(getattr(found, name) for name in ("action", "kind", "name", "detail"))
