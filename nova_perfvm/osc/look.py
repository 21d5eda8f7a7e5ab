# SPDX-License-Identifier: Apache-2.0
"""What commands share that look at a cloud, or at a snapshot of one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from nova_perfvm.diagnose.explain import SchedulerSettings, settings_for
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate import inventory
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import NOVA_CONF_HELP, Arguments, file_argument, one_of
from nova_perfvm.osc.checks import JudgingLister
from nova_perfvm.policy import Policy

NOVA_CONF = file_argument(
    "--nova-conf",
    help=f"{NOVA_CONF_HELP} (default: it is taken to be set up as the policy needs it)",
)


class LookingCommand(JudgingLister):
    """A list of what was found; its exit status says what that means.

    Errors end with status 2.
    """

    # Only a cloud wants credentials, and a snapshot is none.
    auth_required = False
    cannot_tell = 2
    arguments: Arguments = (
        one_of(
            file_argument(
                "--snapshot",
                help="look at what openstack perfvm snapshot save has saved (- for "
                "standard input), not at the cloud",
            ),
            snapshots.NOVA_DB,
        ),
        file_argument(
            "--inventory",
            help="inventory file that tells hosts' NUMA cells, for those of which "
            "Nova's database has told none",
        ),
    )

    def settings(
        self, parsed_args: argparse.Namespace, policy: Policy
    ) -> SchedulerSettings:
        """Return nova-scheduler's settings, from a copy of its file if there is one.

        :raises SettingsError: when the file cannot be read
        """
        if parsed_args.nova_conf is None:
            return settings_for(policy)
        from nova_perfvm.cloud.preflight import read_settings  # noqa: PLC0415

        return settings_for(policy, read_settings(parsed_args.nova_conf))

    def snapshot(self, parsed_args: argparse.Namespace, policy: Policy) -> Snapshot:
        """Return what there is to look at; what is missing in it is said.

        :raises PerfVMError: when it cannot be read, or the cloud fails
        """
        # First, as a mistake there shows at once.
        cells = None
        if parsed_args.inventory is not None:
            cells = inventory.load(parsed_args.inventory, policy)
        if parsed_args.snapshot is not None:
            found = snapshots.read(parsed_args.snapshot)
            self.remark([f"as it was at {found.taken_at}"])
        else:
            self._log_in()
            found = snapshots.take(self.app, nova_conf=parsed_args.from_nova_db)
        self.remark(f"not seen: {gap}" for gap in found.gaps)
        if cells is not None:
            found, remarks = inventory.with_inventory(found, cells)
            self.remark(remarks)
        return found

    def remark(self, remarks: Iterable[str]) -> None:
        """Say on standard error what is no row."""
        for remark in remarks:
            self.app.stderr.write(f"{remark}\n")

    def _log_in(self) -> None:
        if getattr(self.app, "client_manager", None) is None:
            raise PerfVMError(
                "there is no cloud here: name a snapshot (--snapshot FILE), or use "
                "openstack perfvm"
            )
        self.auth_required = True
        try:
            self.app.prepare_to_run_command(self)
        except Exception as exc:
            # Whatever a plugin for authentication raises.
            first, *_ = str(exc).splitlines() or [type(exc).__name__]
            raise PerfVMError(f"cannot log in: {first}") from exc
