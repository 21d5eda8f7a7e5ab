# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cloud, and record the policy's digest in the cloud."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nova_perfvm.cloud import policy_record
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.recorded_policy import RecordedPolicy, short_digest
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import BUILT_IN, PolicyCommand, policy_file
from nova_perfvm.policy import Policy


class RecordingCommand(PolicyCommand):
    """A command that refuses a policy other than the one recorded on the cloud.

    :ivar chosen: the policy by which the command changes the cloud; None before
        :meth:`chosen_policy`
    """

    arguments: opt.Arguments = (opt.POLICY_CHANGED,)
    chosen: Policy | None = None
    _seen: RecordedPolicy | None = None

    def chosen_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the named policy, and keep it as `chosen`."""
        self.chosen = super().chosen_policy(parsed_args)
        return self.chosen

    def checked_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the named policy after a comparison with the recorded one.

        :raises PerfVMError: when no policy is named, or the cloud records another one
        :raises CloudError: when the record cannot be read
        """
        policy = self.chosen_policy(parsed_args)
        seen = policy_record.read(self.cloud)
        self.compare_policy(parsed_args, policy, seen)
        return policy

    def compare_policy(
        self,
        parsed_args: argparse.Namespace,
        policy: Policy,
        recorded: RecordedPolicy | None,
    ) -> None:
        """Refuse a policy that differs from the record, unless --policy-changed.

        :raises PerfVMError: names both policies
        """
        if policy is not self.chosen:
            # The command only reads this policy, so that a warning suffices.
            super().compare_policy(parsed_args, policy, recorded)
            return
        self._seen = recorded
        if not parsed_args.policy_changed:
            refuse_another(parsed_args, policy, recorded)

    def record_policy(self, parsed_args: argparse.Namespace) -> None:
        """Record the chosen policy's digest on the cloud, before the first change.

        :raises PerfVMError: when another process has recorded another policy meanwhile
        :raises CloudError: when a request fails
        """
        policy, seen = self.chosen, self._seen
        if policy is None or (seen is not None and seen.digest == policy.digest):
            return
        mine = f"policy sha256 {short_digest(policy.digest)}"
        if getattr(parsed_args, "dry_run", False):
            self.tell(f"would record {mine}")
            return
        path = policy_file(parsed_args)
        name = BUILT_IN if path is None else str(Path(path).absolute())
        there = policy_record.record(self.cloud, policy.digest, name, seen)
        refuse_another(parsed_args, policy, there)
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


def refuse_another(
    parsed_args: argparse.Namespace, policy: Policy, recorded: RecordedPolicy | None
) -> None:
    """Refuse a policy other than the recorded one.

    :raises PerfVMError: names both policies
    """
    if recorded is not None and recorded.digest != policy.digest:
        raise PerfVMError(
            f"the cloud was changed by another policy, {recorded}, than "
            f"{policy_file(parsed_args) or BUILT_IN} (sha256 "
            f"{short_digest(policy.digest)}): name the recorded policy with --policy, "
            "or record the new one by a command with --policy-changed"
        )
