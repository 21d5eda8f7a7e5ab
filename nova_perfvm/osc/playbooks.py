# SPDX-License-Identifier: Apache-2.0
"""``fleet playbook`` and ``host playbook``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from nova_perfvm.generate.hosts import output, playbook
from nova_perfvm.measure import fleet
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PerfVMCommand


class _WritePlaybook(PerfVMCommand):
    """A command that writes a playbook and its files into a directory."""

    arguments = (
        opt.file(
            "--output-dir",
            "directory for the playbook, its files, and an example of its inventory",
            metavar="DIR",
            required=True,
        ),
        opt.flag("--force", "replace the files of an earlier run; other files stay"),
    )

    def write_files(
        self,
        parsed_args: argparse.Namespace,
        files: Mapping[str, str],
        known: Iterable[str],
    ) -> Path:
        """Write the files, print their paths, and return their directory.

        :param known: names of all files that the playbook of any version has
        """
        directory = Path(parsed_args.output_dir)
        output.write_files(directory, files, known, force=parsed_args.force)
        self.write("".join(f"{directory / name}\n" for name in known))
        return directory


class FleetPlaybook(_WritePlaybook):
    """Write an Ansible playbook that collects facts and runs benchmarks on machines.

    The playbook's first lines say how to run it. The control node needs ansible-core
    2.19 or later, and nova-perfvm for benchmarks; the machines need Python.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.write_files(parsed_args, fleet.files(), fleet.FILES)


class HostPlaybook(_WritePlaybook):
    """Write an Ansible playbook that configures hosts of a running cloud, one by one.

    For each host, it drains the host, configures it, restarts nova-compute, enrolls
    the host and verifies it. The playbook's first lines say how to run it. The control
    node needs ansible-core 2.19 or later, nova-perfvm and the openstack client; the
    hosts need Python.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        directory = self.write_files(parsed_args, playbook.files(), playbook.FILES)
        self.write(playbook.following(directory))
