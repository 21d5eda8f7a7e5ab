# SPDX-License-Identifier: Apache-2.0
"""Arguments of commands that forecast live migrations."""

from __future__ import annotations

import argparse

from nova_perfvm.changes.migrations.estimates import (
    ASSUMED_RATE,
    USUAL_LINK,
    Estimates,
    LiveMigrationOptions,
)
from nova_perfvm.cloud.host_nodes import hypervisors
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PerfVMCommand, options_of
from nova_perfvm.policy import Policy


class ForecastingCommand(PerfVMCommand):
    """A command that forecasts how long live migrations take, and if they converge."""

    arguments: opt.Arguments = (
        opt.collected(
            "the forecast uses the dirty rates that virsh domdirtyrate-calc measured "
            "on the host (may be repeated)"
        ),
        opt.file(
            "--compute-conf",
            "copy of a compute host's nova.conf, whose [libvirt]live_migration_* "
            "the forecast uses (default: Nova's defaults)",
        ),
        opt.option(
            "--bandwidth MIB",
            "bandwidth of migrations between hosts in MiB per second (default: "
            "%(default)g, for 10 Gbit/s)",
            type=opt.positive,
            default=USUAL_LINK,
        ),
        opt.option(
            "--dirty-rate MIB",
            "dirty rate in MiB per second, assumed for servers whose dirty rate "
            "was not collected (default: %(default)g)",
            type=opt.positive,
            default=ASSUMED_RATE,
        ),
    )

    def estimates(self, parsed_args: argparse.Namespace, policy: Policy) -> Estimates:
        """Return the options, bandwidth and dirty rates for forecasts.

        :raises PerfVMError: when a file is not valid
        """
        path = parsed_args.compute_conf
        seen = hypervisors(parsed_args.collected, policy)
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
