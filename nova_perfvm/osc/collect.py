# SPDX-License-Identifier: Apache-2.0
"""``host collect`` and ``guest collect``: save the facts of this machine to a file."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any, Final

from nova_perfvm.measure.collect import collector, reading
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PerfVMCommand
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.printable import number_of

_ARCHIVES: Final = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".tar")


def _output_file(text: str) -> str:
    """Return an argument that names a file, and refuse the names of archives."""
    if not text or text.endswith(_ARCHIVES):
        message = f"{text!r}: expected the name of a file, which will be plain JSON"
        raise argparse.ArgumentTypeError(message)
    return text


def _default_name(document: Mapping[str, Any]) -> str:
    """Return a file name of the kind, the hostname and the time of the collection."""
    hostname = re.sub(r"[^A-Za-z0-9_.-]", "_", document["hostname"]) or "_"
    taken_at = re.sub(r"[^0-9T]", "", document["taken_at"].split("+")[0])
    return f"perfvm-{document['kind']}-{hostname}-{taken_at}Z.json"


class _Collect(PerfVMCommand):
    """Collect the facts of this machine.

    :cvar kind: the kind of machine, "host" or "guest"
    """

    kind: str
    arguments = (
        opt.option(
            "--interval SECONDS",
            "time between two readings of counters, 0 for one reading (default: "
            "%(default)g)",
            type=collector.interval,
            default=collector.DEFAULT_INTERVAL_S,
        ),
        opt.one_of(
            opt.file(
                "--output",
                "file to write, - for standard output (default: a new file in the "
                "current directory, named by host and time)",
                type=_output_file,
            ),
            opt.flag(
                "--script",
                "only print the collecting script, which runs on any machine with "
                "Python 3.6 or newer",
            ),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Collect, and write a file; or print the script."""
        if parsed_args.script:
            self.write(reading.script())
            return
        with ProgressLine() as progress:
            found = collector.collect(
                self.kind, parsed_args.interval, progress=progress
            )
        output = parsed_args.output or _default_name(found)
        read = (
            f"{number_of(len(found['files']), 'file')}, "
            f"{number_of(len(found['commands']), 'command')}; "
            f"{len(found['unread'])} not read"
        )
        self.save(output, collector.dumps(found), read)


class CollectHost(_Collect):
    """Collect the facts of a hypervisor: CPUs, NICs, domains, QEMU's threads."""

    kind = "host"


class CollectGuest(_Collect):
    """Collect the facts of a VM: CPUs, interrupts, queues of NICs and disks."""

    kind = "guest"
