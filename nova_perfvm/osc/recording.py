# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cloud by a policy, and leave its digest there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nova_perfvm.cloud import policy_record
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.recorded_policy import RecordedPolicy, short_digest
from nova_perfvm.osc.base import BUILT_IN, Arguments, PolicyCommand, flag, policy_file
from nova_perfvm.policy import Policy


class RecordingCommand(PolicyCommand):
    """A command that refuses another policy than that by which the cloud was changed.

    :ivar chosen: the policy to change the cloud by, if the command has one
    """

    arguments: Arguments = (
        flag(
            "--policy-changed",
            "go on with another policy than the one that is recorded on the cloud, and "
            "record this one",
        ),
    )
    chosen: Policy | None = None
    _seen: RecordedPolicy | None = None

    def chosen_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy to change a cloud by, which somebody has to have named."""
        self.chosen = super().chosen_policy(parsed_args)
        return self.chosen

    def checked_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the policy to change a cloud by, compared with the recorded one.

        :raises PerfVMError: when nobody has named it, or another one is recorded
        :raises CloudError: when the recorded one cannot be read
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
        """Refuse a policy that is not the recorded one, unless it is to replace it.

        :raises PerfVMError: with both named
        """
        if policy is not self.chosen:
            # It is only looked at.
            super().compare_policy(parsed_args, policy, recorded)
            return
        self._seen = recorded
        if not parsed_args.policy_changed:
            refuse_another(parsed_args, policy, recorded)

    def record_policy(self, parsed_args: argparse.Namespace) -> None:
        """Leave the digest of the chosen policy on the cloud, before it is changed.

        :raises PerfVMError: when somebody has recorded another one meanwhile
        :raises CloudError: when a request fails
        """
        policy, seen = self.chosen, self._seen
        if policy is None or (seen is not None and seen.digest == policy.digest):
            return
        mine = f"policy sha256 {short_digest(policy.digest)}"
        if getattr(parsed_args, "dry_run", False):
            self.app.stderr.write(f"would record {mine}\n")
            return
        path = policy_file(parsed_args)
        name = BUILT_IN if path is None else str(Path(path).absolute())
        there = policy_record.record(self.cloud, policy.digest, name, seen)
        refuse_another(parsed_args, policy, there)
        self.app.stderr.write(f"recorded: {mine}\n")

    def record_for(
        self, parsed_args: argparse.Namespace, changes: Sequence[Any], *, agreed: bool
    ) -> None:
        """Record the chosen policy for changes that are made, or would be.

        Where there are none, --yes and --policy-changed record it.
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
    """Refuse a policy by which the cloud was not changed.

    :raises PerfVMError: with both named
    """
    if recorded is not None and recorded.digest != policy.digest:
        raise PerfVMError(
            f"the cloud was changed by another policy, {recorded}, than "
            f"{policy_file(parsed_args) or BUILT_IN} (sha256 "
            f"{short_digest(policy.digest)}): name that one with --policy, or record "
            "this one by a command with --policy-changed"
        )
