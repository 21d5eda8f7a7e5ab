# SPDX-License-Identifier: Apache-2.0
"""Commands that judge a cloud in every way at once."""

from __future__ import annotations

import argparse

from nova_perfvm.diagnose import overview
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import OUTPUT, argument
from nova_perfvm.osc.judging import LookingCommand
from nova_perfvm.osc.snapshot import seen_in


class OverviewCommand(LookingCommand):
    """A command that writes an overview of a cloud or a snapshot."""

    arguments = (
        argument(
            "--flavor",
            metavar="FLAVOR",
            action="append",
            dest="flavors",
            help="judge hosts for this flavor of the cloud, may be repeated (default: "
            "those of the policy)",
        ),
        OUTPUT,
    )

    def render(self, found: Overview) -> str:
        """Return what is written."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Look, judge, and write it."""
        found = self._overview(parsed_args)
        self.write(self.render(found), parsed_args.output)
        if parsed_args.output is not None:
            self.write(f"{parsed_args.output}: {seen_in(found.subject.snapshot)}\n")

    def _overview(self, parsed_args: argparse.Namespace) -> Overview:
        policy = self.policy(parsed_args)
        settings = self.settings(parsed_args, policy)
        snapshot = self.snapshot(parsed_args, policy)
        return overview.look(
            policy,
            snapshot,
            settings,
            flavors=parsed_args.flavors,
            generators=extensions.load_generators(),
        )
