# SPDX-License-Identifier: Apache-2.0
"""``host collect`` and ``guest collect``: what the machine they run on shows."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nova_perfvm.documents import textfile
from nova_perfvm.facts.hypervisor import Hypervisor
from nova_perfvm.measure.collect import collector, reading
from nova_perfvm.osc.base import (
    Argument,
    PerfVMCommand,
    argument,
    file_argument,
    flag,
    one_of,
)
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

_ARCHIVES: Final = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".tar")


def collected_argument(meaning: str) -> Argument:
    """Return the option that names what was collected on hosts.

    :param meaning: what is done with it
    """
    return file_argument(
        "--collected",
        action="append",
        default=[],
        help=f"what nova-perfvm host collect has written on a host; {meaning}",
    )


def hypervisors(
    parsed_args: argparse.Namespace,
    policy: Policy | None = None,
    conf: str | None = None,
) -> tuple[Hypervisor, ...]:
    """Read what was collected on hosts.

    :param policy: tells which VMs should own CPUs
    :param conf: path of the nova.conf that these hosts have
    :raises PerfVMError: with what is wrong with a file
    """
    paths: Iterable[str] = parsed_args.collected
    if not paths:
        return ()
    # Most commands that take it are run without.
    from nova_perfvm.cloud.nova_rules import refusal_of  # noqa: PLC0415
    from nova_perfvm.measure import hypervisor  # noqa: PLC0415

    return tuple(hypervisor.load(path, policy, conf, refusal_of) for path in paths)


def _output_file(text: str) -> str:
    if not text or text.endswith(_ARCHIVES):
        message = f"{text!r}: expected the name of a file, which will be plain JSON"
        raise argparse.ArgumentTypeError(message)
    return text


def _default_name(document: Mapping[str, Any]) -> str:
    """Return a file name that says what was collected, where and when."""
    hostname = re.sub(r"[^A-Za-z0-9_.-]", "_", document["hostname"]) or "_"
    taken_at = re.sub(r"[^0-9T]", "", document["taken_at"].split("+")[0])
    return f"perfvm-{document['kind']}-{hostname}-{taken_at}Z.json"


class _Collect(PerfVMCommand):
    """Collect what this machine shows.

    :cvar kind: what it is
    """

    kind: str
    arguments = (
        argument(
            "--interval",
            type=collector.interval,
            default=collector.DEFAULT_INTERVAL_S,
            metavar="SECONDS",
            help="time between the two looks at counters, 0 for one look (default: "
            "%(default)g)",
        ),
        one_of(
            file_argument(
                "--output",
                type=_output_file,
                help="file to write, - for standard output (default: a new file here, "
                "named by host and time)",
            ),
            flag(
                "--script",
                "only print the script that collects: it needs nothing but Python 3.6, "
                "on whatever machine",
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
        if output == "-":
            self.write(collector.dumps(found))
            return
        textfile.replace(output, collector.dumps(found), private=True)
        self.write(
            f"{output}: {number_of(len(found['files']), 'file')}, "
            f"{number_of(len(found['commands']), 'command')}; "
            f"{len(found['unread'])} not read\n"
        )


class CollectHost(_Collect):
    """Collect what a hypervisor shows: CPUs, NICs, domains, QEMU's threads."""

    kind = "host"


class CollectGuest(_Collect):
    """Collect what a VM shows: CPUs, interrupts, queues of NICs and disks."""

    kind = "guest"
