# SPDX-License-Identifier: Apache-2.0
"""``host check``, ``guest check`` and ``server check``."""

from __future__ import annotations

import argparse
import datetime as dt
from dataclasses import replace
from typing import Any, Final

from nova_perfvm.cloud import servers as live
from nova_perfvm.cloud.host_nodes import hypervisors
from nova_perfvm.diagnose.audit import named
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import of_host
from nova_perfvm.findings import CheckFindings
from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.checks import guest as guest_checks
from nova_perfvm.measure.checks import host as host_checks
from nova_perfvm.measure.checks import queue_script
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.checks.report import CheckReport, run
from nova_perfvm.measure.collect import collector, reading
from nova_perfvm.measure.collect.collected import Collected, Kind
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.osc.reports import FORMATS, FindingsLister

NOVA_VIEW: Final = opt.file(
    "--snapshot",
    "file of openstack perfvm snapshot save, for the VMs' classes and, if it was "
    "saved with --from-nova-db, the host's CPU sets (default: from libvirt)",
)
HOST_CONF: Final = opt.file(
    "--nova-conf",
    "the host's nova.conf, for its CPU sets (default: the snapshot's CPU sets, if "
    "it was saved with --from-nova-db, else the CPUs that its VMs own)",
)
# The code of every finding of ``server check``.
_SERVERS: Final = "hypervisor.three_way"
_INTERVAL: Final = opt.option(
    "--interval SECONDS",
    "without FILE: time between two readings of counters (default: %(default)g)",
    type=collector.interval,
    default=collector.DEFAULT_INTERVAL_S,
)


def _collected(kind: Kind) -> opt.Argument:
    """Return the argument FILE: a collected machine to check instead of this one."""
    table = ", or a copy of /proc/interrupts" if kind == "guest" else ""
    return opt.option(
        "file FILE",
        f"file of {kind} collect{table}; - for standard input (default: collect "
        "from this machine)",
        nargs="?",
    )


class CheckCommand(FindingsLister):
    """Base of the commands that check a machine or servers, and print findings."""

    columns = ("Code", "Level", "Subject", "Expected", "Observed", "Source", "Remedy")
    formatter_namespace = FORMATS
    arguments: opt.Arguments = (opt.STRICT,)

    def title(self, report: CheckReport) -> str:
        return f"{len(report.results)} checks of {report.kind} {report.hostname}"


class CheckGuest(CheckCommand):
    """Find what keeps a guest from the performance that its class promises.

    Exits with 0 if all checks pass, 1 for warnings, 2 for failures.
    """

    arguments = (
        _INTERVAL,
        opt.one_of(
            _collected("guest"),
            opt.flag(
                "--fix-script",
                "print user-data of cloud-init that lets a guest use all queues of "
                "its network interfaces, and check nothing",
            ),
        ),
        opt.vm_class(
            "the class of the guest (default: what depends on its class is not judged)"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        if parsed_args.fix_script:
            self.write(queue_script.user_data(), parsed_args.output)
            parsed_args.report = None
            return (), ()
        vm_class = None
        if parsed_args.class_name is not None:
            vm_class = self.policy(parsed_args).get_class(parsed_args.class_name)
        collected = _read(parsed_args, "guest")
        subject = GuestSubject(collected, vm_class)
        return self.reported(
            parsed_args, run(checks_of(guest_checks), collected, subject)
        )

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print the report, unless --fix-script has printed the script."""
        if parsed_args.report is None:
            return 0
        return super().produce_output(parsed_args, column_names, data)


class CheckHost(CheckCommand):
    """Find what keeps a host's VMs from the performance that the policy promises.

    Exits with 0 if all checks pass, 1 for warnings, 2 for failures.
    """

    arguments = (
        _INTERVAL,
        _collected("host"),
        NOVA_VIEW,
        opt.option(
            "--host NAME",
            "the host's name in the snapshot (default: the collected hostname)",
        ),
        HOST_CONF,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        policy = self.policy(parsed_args)
        path, conf = parsed_args.snapshot, parsed_args.nova_conf
        if parsed_args.host is not None and path is None:
            raise PerfVMError("--host names a host of a snapshot: add --snapshot FILE")
        # Files before the collection, which takes time: a wrong file fails at once.
        settings = {nova_conf.PATH: nova_conf.read(conf)} if conf else {}
        snapshot = snapshots.read(path) if path else None
        collected = _read(parsed_args, "host")
        nova = None
        if snapshot is not None:
            nova = of_host(snapshot, parsed_args.host or collected.hostname)
        collected = replace(collected, files={**collected.files, **settings})
        subject = HostSubject(collected, policy, nova)
        return self.reported(
            parsed_args, run(checks_of(host_checks), collected, subject)
        )


class CheckServer(CheckCommand):
    """Check whether Nova, libvirt and the kernel agree on the CPUs of servers.

    Exits with 0 if all agree, 1 for warnings, 2 for failures.
    """

    needs_cloud = True
    arguments = (
        opt.one_of(
            opt.option(
                "server SERVER", "name or ID of a server", nargs="*", default=[]
            ),
            opt.option("--host HOST", "check every pinned server of this host"),
            required=True,
        ),
        opt.collected(
            "name each host of the servers; - for standard input (default: agreement "
            "is unknown; may be repeated)"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        # Files before requests to Nova: a wrong file fails at once.
        collected = hypervisors(parsed_args.collected, self.policy(parsed_args))
        host = parsed_args.host
        if host is None:
            found = live.named(self.cloud, parsed_args.server)
        else:
            host, found = live.on_host(self.cloud, host)
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        nova = named.asked(found, now, host)
        findings = tuple(
            one._replace(code=_SERVERS) for one in named.check(nova, collected, host)
        )
        title = "Nova, libvirt and the kernel agree on each VM"
        hosts = ", ".join(sorted(one.host for one in nova.hosts))
        report = CheckReport((CheckFindings(title, findings),), now, "server", hosts)
        return self.reported(parsed_args, report)

    def title(self, report: CheckReport) -> str:
        where = f" on {report.hostname}" if report.hostname else ""
        return f"check of servers{where}"


def _read(parsed_args: argparse.Namespace, kind: Kind) -> Collected:
    """Return the collected machine of FILE, or collect from this machine."""
    if parsed_args.file is not None:
        if kind == "guest":
            return reading.read_guest(parsed_args.file)
        return reading.read(parsed_args.file, kind)
    with ProgressLine() as progress:
        found = collector.collect(kind, parsed_args.interval, progress=progress)
    return reading.loads(collector.dumps(found), "this machine", kind)
