# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cloud, and record the policy's digest in the cloud."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nova_perfvm.cloud import policy_record
from nova_perfvm.facts.recorded_policy import short_digest
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import BUILT_IN, PolicyCommand, another_policy, policy_file


class RecordingCommand(PolicyCommand):
    """A command that records the policy by which it changes the cloud."""

    arguments: opt.Arguments = (opt.POLICY_CHANGED,)

    def record_policy(self, parsed_args: argparse.Namespace) -> None:
        """Record the chosen policy's digest on the cloud, before the first change.

        :raises PerfVMError: when another process has recorded another policy meanwhile
        :raises CloudError: when a request fails
        """
        policy, seen = self.chosen, self.recorded
        if policy is None or (seen is not None and seen.digest == policy.digest):
            return
        mine = f"policy sha256 {short_digest(policy.digest)}"
        if getattr(parsed_args, "dry_run", False):
            self.tell(f"would record {mine}")
            return
        path = policy_file(parsed_args)
        name = BUILT_IN if path is None else str(Path(path).absolute())
        there = policy_record.record(self.cloud, policy.digest, name, seen)
        if there.digest != policy.digest:
            raise another_policy(parsed_args, policy, there)
        self.tell(f"recorded: {mine}")

    def record_for(
        self, parsed_args: argparse.Namespace, changes: Sequence[Any], *, agreed: bool
    ) -> None:
        """Record the chosen policy if `changes` are agreed to, or --dry-run shows them.

        Without changes, --yes or --policy-changed record the policy.
        """
        if changes:
            wanted = agreed or parsed_args.dry_run
        else:
            wanted = parsed_args.yes or parsed_args.policy_changed
        if wanted:
            self.record_policy(parsed_args)
