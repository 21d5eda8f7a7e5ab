# SPDX-License-Identifier: Apache-2.0
"""``fleet playbook`` and ``host playbook``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from nova_perfvm.generate.hosts import output, playbook
from nova_perfvm.measure import fleet
from nova_perfvm.osc.base import PerfVMCommand, file_argument, flag


class _WritePlaybook(PerfVMCommand):
    """A command that writes what ``ansible-playbook`` needs into a directory."""

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

    def write_files(
        self,
        parsed_args: argparse.Namespace,
        files: Mapping[str, str],
        known: Iterable[str],
    ) -> Path:
        """Write the files, and name them; return their directory.

        :param known: every name that an earlier version may have left
        """
        directory = Path(parsed_args.output_dir)
        output.write_files(directory, files, known, force=parsed_args.force)
        self.write("".join(f"{directory / name}\n" for name in known))
        return directory


class FleetPlaybook(_WritePlaybook):
    """Write an Ansible playbook that collects and measures on many machines.

    Its first lines say how to run it. It needs ansible-core 2.19 or later where it
    runs, and nova-perfvm for benchmarks there; Python on the machines.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the files, and name them."""
        self.write_files(parsed_args, fleet.files(), fleet.FILES)


class HostPlaybook(_WritePlaybook):
    """Write an Ansible playbook that takes hosts of a running cloud in, one by one.

    It drains a host, configures it, restarts nova-compute, enrolls and verifies it.
    Its first lines say how to run it. It needs ansible-core 2.19 or later,
    nova-perfvm and the openstack client where it runs; Python on the hosts.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the files, name them, and say what is to be done next."""
        directory = self.write_files(parsed_args, playbook.files(), playbook.FILES)
        self.write(playbook.following(directory))
