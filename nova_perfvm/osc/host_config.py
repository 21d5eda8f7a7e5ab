# SPDX-License-Identifier: Apache-2.0
"""``host config``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nova_perfvm import textfile
from nova_perfvm.exceptions import ShapeError
from nova_perfvm.generate.hosts import (
    MODES,
    RESERVED_MEMORY_GB,
    HostConfigError,
    HostRequest,
    TopologyError,
    from_shape,
    generate,
    lscpu,
    output,
    rendering,
    residents,
    sysfs,
)
from nova_perfvm.osc.base import OfflineCommand, file_path
from nova_perfvm.osc.formats import document
from nova_perfvm.policy import HostShape

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from nova_perfvm.generate.hosts import HostConfig, Topology

_FORMATS: Final[dict[str, Callable[[HostConfig], str]]] = {
    "ini": rendering.as_ini,
    "yaml": lambda config: document.as_yaml(rendering.as_document(config)),
    "json": lambda config: document.as_json(rendering.as_document(config)),
}

# A PiB; more is a wrong unit.
_MAX_MEMORY_GB: Final = 1024 * 1024


class ConfigHost(OfflineCommand):
    """Print nova.conf, provider.yaml and more for a compute host of a mode."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what describes the host, what is wished, and where it goes."""
        parser = super().get_parser(prog_name)
        _describe_host(parser)
        _describe_wish(parser)
        parser.add_argument(
            "-f",
            "--format",
            choices=tuple(_FORMATS),
            help="default: ini, all files one after the other",
        )
        parser.add_argument(
            "--output-dir",
            type=file_path,
            metavar="DIR",
            help=f"write {', '.join(rendering.FILES)} there instead of printing",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="with --output-dir: replace the files of an earlier run",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Generate the configuration; print it, or write it to files."""
        _check_output(parsed_args)
        config = generate(
            HostRequest(
                policy=self.policy(parsed_args),
                topology=_topology(parsed_args),
                mode=parsed_args.mode,
                class_name=parsed_args.class_name,
                reserve=parsed_args.reserve,
                reserve_memory_gb=parsed_args.reserve_memory_gb,
                shared_nodes=parsed_args.shared_nodes,
                read_iops=parsed_args.read_iops,
                write_iops=parsed_args.write_iops,
                residents=None
                if parsed_args.servers is None
                else residents.parse(
                    textfile.read(parsed_args.servers), parsed_args.servers
                ),
            ),
            parsed_args.policy,
        )
        if parsed_args.output_dir is None:
            self.write(_FORMATS[parsed_args.format or "ini"](config))
        else:
            directory = Path(parsed_args.output_dir)
            files = rendering.as_files(config)
            output.write(directory, files, rendering.FILES, force=parsed_args.force)
            self.write("".join(f"{directory / name}\n" for name in files))
        if parsed_args.output_dir is not None or not self.app.stdout.isatty():
            # On a terminal they stand above the configuration already.
            for warning in config.warnings:
                self.app.stderr.write(f"warning: {warning}\n")


def _describe_host(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--local", action="store_true", help="the machine that this runs on"
    )
    where.add_argument(
        "--topology",
        metavar="SHAPE|FILE",
        help="NUMA nodes x cores[x threads], such as 2x20x2; or a file with the output "
        "of lscpu -J -e, or of lscpu -J",
    )
    parser.add_argument(
        "--memory-gb",
        type=int,
        metavar="GB",
        help="memory of the whole host in GiB (default: with --local what the kernel "
        "says, else unknown)",
    )
    parser.add_argument(
        "--servers",
        type=file_path,
        metavar="FILE",
        help="the VMs on the host: JSON of openstack server show, one or several",
    )


def _describe_wish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        choices=MODES,
        required=True,
        help="dedicated: pinned VMs only; shared: the others only; mixed: each on NUMA "
        "nodes of its own; elastic: either, as they come (placement: units)",
    )
    parser.add_argument(
        "--class",
        dest="class_name",
        metavar="NAME",
        help="the pinned class the host is for (default: the only one there is)",
    )
    parser.add_argument(
        "--reserve",
        type=int,
        default=0,
        metavar="N",
        help="cores of each NUMA node to keep for the host (default: %(default)s)",
    )
    parser.add_argument(
        "--reserve-memory-gb",
        type=int,
        default=RESERVED_MEMORY_GB,
        metavar="GB",
        help="memory of each NUMA node to keep for the host (default: %(default)s)",
    )
    parser.add_argument(
        "--shared-nodes",
        type=int,
        default=1,
        metavar="N",
        help="mixed: NUMA nodes, the last ones, to share (default: %(default)s)",
    )
    for kind in ("read", "write"):
        parser.add_argument(
            f"--{kind}-iops",
            type=int,
            metavar="N",
            help=f"{kind}s per second that the host's disks give, where the policy "
            "guarantees some",
        )


def _check_output(parsed_args: argparse.Namespace) -> None:
    if parsed_args.output_dir is None and parsed_args.force:
        raise HostConfigError("--force is for --output-dir: leave it out")
    if parsed_args.output_dir is not None and parsed_args.format is not None:
        raise HostConfigError(
            "--output-dir writes each file in its own format: leave --format out"
        )


def _topology(parsed_args: argparse.Namespace) -> Topology:
    memory_gb = parsed_args.memory_gb
    if memory_gb is not None and not 1 <= memory_gb <= _MAX_MEMORY_GB:
        raise HostConfigError(
            f"--memory-gb {memory_gb}: expected 1 to {_MAX_MEMORY_GB} GiB"
        )
    topology = sysfs.read() if parsed_args.local else _described(parsed_args.topology)
    return topology if memory_gb is None else topology.with_memory(memory_gb)


def _described(text: str) -> Topology:
    """Take a text for a shape, or else for a file's name."""
    try:
        return from_shape(HostShape.parse(text))
    except ShapeError as exc:
        if not os.path.exists(text):  # noqa: PTH110 - pathlib raises for long names
            raise TopologyError(f"{exc}; and there is no file of that name") from exc
    return lscpu.parse(textfile.read(text), text)
