# SPDX-License-Identifier: Apache-2.0
"""``bench run`` and ``bench import``."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import own_figures, run, scenario
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.osc.base import PerfVMCommand, argument, count, file_argument, flag
from nova_perfvm.osc.output import SIGINT_EXIT, ProgressLine
from nova_perfvm.printable import number_of

_SOME_FAILED: Final = 1


class RunBenchmarks(PerfVMCommand):
    """Measure what a scenario file asks for, on all of its targets.

    What is measured is written after each step; after Ctrl-C, --resume goes on.
    Exits with 1 also if something could not be measured.
    """

    arguments = (
        file_argument("scenario", help="scenario: who measures what, and how often"),
        file_argument("--output", required=True, help="JSON of the measurements"),
        flag(
            "--resume",
            "go on with the run that --output is of: measure what is missing, or has "
            "failed",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Run, and say how it ended."""
        wanted = scenario.load(parsed_args.scenario)
        output = parsed_args.output
        begin = Record.resume if parsed_args.resume else Record.begin
        record = begin(output, wanted)
        try:
            with ProgressLine() as progress:

                def warn(text: str) -> None:
                    progress.clear()
                    self.warn(text)

                total = run.run(wanted, record, progress, warn)
        except KeyboardInterrupt:
            done = len(record.done)
            steps = sum(1 for _ in wanted.steps(record.run["seed"]))
            self.app.stderr.write(
                f"interrupted: {done} of {steps} steps are in {output}; go on by the "
                "same command with --resume\n"
            )
            self.exit_status = SIGINT_EXIT
            return
        failed = len(record.run["failures"])
        self.write(
            f"{output}: {len(record.done)} of {total} steps; "
            f"{number_of(failed, 'failure')}\n"
        )
        if failed:
            self.exit_status = _SOME_FAILED


class ImportFigures(PerfVMCommand):
    """Take figures that were measured by hand, for bench compare.

    Of one VM, or of one run on the host: what sysbench cpu printed, and JSON of fio and
    iperf3. Each further file of the same figures, made the same way, is another round.
    """

    arguments = (
        file_argument("files", nargs="+", help="what the tools printed"),
        argument("--who", metavar="NAME", required=True, help="who measured"),
        argument(
            "--kind", choices=("host", "guest"), required=True, help="what that is"
        ),
        argument(
            "--threads",
            type=count,
            metavar="N",
            help="threads, jobs or connections, where the files do not say it",
        ),
        argument(
            "--at-once",
            type=count,
            metavar="N",
            default=1,
            help="VMs, or runs on the host, that measured at this time (default: 1)",
        ),
        file_argument("--output", required=True, help="JSON of the measurements"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Read the files, and write what they say."""
        found = own_figures.read(
            [(path, textfile.read(path)) for path in parsed_args.files],
            who=parsed_args.who,
            machine=samples.Machine(parsed_args.kind),
            threads=parsed_args.threads,
            at_once=parsed_args.at_once,
        )
        textfile.replace(parsed_args.output, samples.dumps(found))
        measured = number_of(len(found.measurements), "measurement")
        self.write(f"{parsed_args.output}: {measured}\n")
