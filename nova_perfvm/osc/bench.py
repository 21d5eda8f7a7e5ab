# SPDX-License-Identifier: Apache-2.0
"""``bench run`` and ``bench import``."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import own_figures, run, scenario
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PerfVMCommand
from nova_perfvm.osc.output import SIGINT_EXIT, ProgressLine
from nova_perfvm.printable import number_of

_SOME_FAILED: Final = 1


class RunBenchmarks(PerfVMCommand):
    """Measure what a scenario file asks for, on all of its targets.

    What is measured is written after each step; after Ctrl-C, --resume goes on.
    Exits with 1 also if something could not be measured.
    """

    arguments = (
        opt.file("scenario", "scenario: who measures what, and how often"),
        opt.file("--output", "JSON of the measurements", required=True),
        opt.flag(
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
        opt.file("files", "what the tools printed", nargs="+"),
        opt.option("--who NAME", "who measured", required=True),
        opt.option("--kind", "what that is", choices=("host", "guest"), required=True),
        opt.option(
            "--threads N",
            "threads, jobs or connections, where the files do not say it",
            type=opt.count,
        ),
        opt.option(
            "--at-once N",
            "VMs, or runs on the host, that measured at this time (default: 1)",
            type=opt.count,
            default=1,
        ),
        opt.file("--output", "JSON of the measurements", required=True),
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
