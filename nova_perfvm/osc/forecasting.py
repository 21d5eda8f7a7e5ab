# SPDX-License-Identifier: Apache-2.0
"""What commands that forecast live migrations are told of them."""

from __future__ import annotations

import argparse

from nova_perfvm.changes.migrations.estimates import (
    ASSUMED_RATE,
    USUAL_LINK,
    Estimates,
    LiveMigrationOptions,
)
from nova_perfvm.osc.base import (
    Arguments,
    PerfVMCommand,
    argument,
    file_argument,
    options_of,
    positive,
)
from nova_perfvm.osc.collect import collected_argument, hypervisors
from nova_perfvm.policy import Policy


class ForecastingCommand(PerfVMCommand):
    """A command that says how long live migrations take, and whether they converge."""

    arguments: Arguments = (
        collected_argument(
            "the dirty rates that virsh domdirtyrate-calc has left there are those of "
            "the forecast (may be repeated)"
        ),
        file_argument(
            "--compute-conf",
            help="copy of a compute host's nova.conf, for [libvirt]live_migration_* "
            "of the forecast (default: Nova's defaults)",
        ),
        argument(
            "--bandwidth",
            type=positive,
            default=USUAL_LINK,
            metavar="MIB",
            help="MiB per second that the network carries between hosts (default: "
            "%(default)g, of 10 Gbit/s)",
        ),
        argument(
            "--dirty-rate",
            type=positive,
            default=ASSUMED_RATE,
            metavar="MIB",
            help="MiB per second that servers write whose dirty rate was not "
            "collected (default: %(default)g, an assumption)",
        ),
    )

    def estimates(self, parsed_args: argparse.Namespace, policy: Policy) -> Estimates:
        """Return what forecasts rest on.

        :raises PerfVMError: with what is wrong with a file
        """
        path = parsed_args.compute_conf
        seen = hypervisors(parsed_args, policy)
        return Estimates(
            options=LiveMigrationOptions.of(options_of(path) or {}),
            options_of=path or "",
            link=parsed_args.bandwidth,
            dirty_rate=parsed_args.dirty_rate,
            measured={
                uuid: vm.dirty_rate
                for host in seen
                for uuid, vm in host.vms.items()
                if vm.dirty_rate is not None
            },
        )
