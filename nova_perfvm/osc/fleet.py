# SPDX-License-Identifier: Apache-2.0
"""``fleet playbook``."""

from __future__ import annotations

import argparse
from pathlib import Path

from nova_perfvm.osc.base import PerfVMCommand, file_argument, flag


class Playbook(PerfVMCommand):
    """Write an Ansible playbook that collects and measures on many machines.

    Its first lines say how to run it. It needs ansible-core 2.19 or later where it
    runs, and nova-perfvm for benchmarks there; Python on the machines.
    """

    arguments = (
        file_argument(
            "--output-dir",
            metavar="DIR",
            required=True,
            help="where to write the playbook, an example of an inventory for it, and "
            "what it needs",
        ),
        flag("--force", "replace the files of an earlier version, not what is yours"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the files, and name them."""
        from nova_perfvm.generate.hosts import output  # noqa: PLC0415
        from nova_perfvm.measure import fleet  # noqa: PLC0415

        directory = Path(parsed_args.output_dir)
        output.write(directory, fleet.files(), fleet.FILES, force=parsed_args.force)
        self.write("".join(f"{directory / name}\n" for name in fleet.FILES))
