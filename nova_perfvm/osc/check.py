# SPDX-License-Identifier: Apache-2.0
"""``guest check``: whether a guest has what its class promises."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from nova_perfvm import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import (
    Arguments,
    Table,
    argument,
    class_argument,
    flag,
    one_of,
)
from nova_perfvm.osc.formats import checked
from nova_perfvm.osc.reports import ReportFormatter, ReportingLister

if TYPE_CHECKING:
    from nova_perfvm.measure.checks.report import CheckReport
    from nova_perfvm.measure.collected import Collected
    from nova_perfvm.policy import VMClass

_COLUMNS: Final = (
    *("Code", "Status", "Subject"),
    *("Expected", "Observed", "Source", "Remedy"),
)
# Of a JSON of a host with many VMs.
_MOST_BYTES: Final = 512 * 1024 * 1024


class JUnitFormatter(ReportFormatter):
    """XML for what runs tests."""

    render = staticmethod(checked.junit)


class PrometheusFormatter(ReportFormatter):
    """Metrics for node_exporter's textfile collector."""

    render = staticmethod(checked.prometheus)


class CheckCommand(ReportingLister):
    """A command that checks a machine, and prints what it found."""

    auth_required = False
    arguments: Arguments = (
        flag("--strict", "exit with 1 for what nobody can tell, too"),
    )

    def reported(self, parsed_args: argparse.Namespace, report: CheckReport) -> Table:
        """Return the table of a report, worst first, and keep the exit status."""
        parsed_args.report = report
        self.exit_status = report.exit_code(strict=parsed_args.strict)
        return _COLUMNS, [
            (one.code, one.status.value, one.subject, *one[3:])
            for one in report.outcomes
        ]

    def summary(self, report: CheckReport) -> str:
        """Say in one line what was found."""
        from nova_perfvm.measure.outcome import Status  # noqa: PLC0415

        counts = ", ".join(
            f"{report.counts[status]} {status.value}" for status in reversed(Status)
        )
        machine = f"{report.kind} {report.hostname}"
        return f"{len(report.results)} checks of {machine}: {counts}"

    @property
    def formatter_namespace(self) -> str:
        """Name the entry points: the client's own formats, and reports."""
        return "nova_perfvm.check.formatter"


class CheckGuest(CheckCommand):
    """Find what keeps a guest from the performance that its class promises.

    Exits with 0 if all holds, 1 for warnings, 2 for failures, 3 if it could not look.
    """

    arguments = (
        one_of(
            argument(
                "file",
                nargs="?",
                metavar="FILE",
                help="what guest collect has written, - for standard input (default: "
                "look at this machine)",
            ),
            flag(
                "--fix-script",
                "print user-data of cloud-init that lets a guest use all queues of "
                "its network interfaces, and check nothing",
            ),
        ),
        class_argument(
            "the class that the guest is of (default: what depends on it is not judged)"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read what was collected, and judge it."""
        if parsed_args.fix_script:
            from nova_perfvm.measure import cure  # noqa: PLC0415

            self.write(cure.user_data())
            parsed_args.report = None
            return (), ()
        # Only commands that judge need them.
        from nova_perfvm.measure.checks import guest  # noqa: PLC0415
        from nova_perfvm.measure.checks.check import checks_of  # noqa: PLC0415
        from nova_perfvm.measure.checks.guest_subject import (  # noqa: PLC0415
            GuestSubject,
        )
        from nova_perfvm.measure.checks.report import run  # noqa: PLC0415

        vm_class = self._class(parsed_args)
        collected = _read(parsed_args.file)
        subject = GuestSubject(collected, vm_class)
        return self.reported(parsed_args, run(checks_of(guest), collected, subject))

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Any, data: Any
    ) -> int:
        """Print the report, unless it was the script that was asked for."""
        if parsed_args.report is None:
            return 0
        return super().produce_output(parsed_args, column_names, data)

    def _class(self, parsed_args: argparse.Namespace) -> VMClass | None:
        if parsed_args.class_name is not None:
            return self.policy(parsed_args).get_class(parsed_args.class_name)
        if parsed_args.policy is not None:
            self.warn("without --class nothing of the policy is judged")
        return None


def _read(path: str | None) -> Collected:
    """Return what was collected in a guest."""
    from nova_perfvm.measure.collected import (  # noqa: PLC0415
        Collected,
        CommandOutput,
    )

    if path is None:
        raise PerfVMError("name the file that guest collect has written")
    try:
        document = json.loads(textfile.read(path, _MOST_BYTES))
        document.pop("schema_version", None)
        commands = document.pop("commands", {})
        outputs = {line: CommandOutput(**output) for line, output in commands.items()}
        return Collected(commands=outputs, **document)
    except (ValueError, TypeError, AttributeError) as exc:
        raise PerfVMError(f"{path}: not what guest collect writes: {exc}") from exc
