# SPDX-License-Identifier: Apache-2.0
"""``host config``."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import kind_of
from nova_perfvm.exceptions import ShapeError
from nova_perfvm.generate.hosts import (
    MODES,
    RESERVED_MEMORY_GB,
    HostConfig,
    HostConfigError,
    HostRequest,
    Topology,
    TopologyError,
    deployers,
    from_shape,
    generate,
    lscpu,
    output,
    rendering,
    residents,
    sysfs,
)
from nova_perfvm.measure import reading
from nova_perfvm.measure.observed import topology
from nova_perfvm.osc.base import (
    PolicyCommand,
    argument,
    class_argument,
    file_argument,
    flag,
    format_argument,
    one_of,
    policy_file,
)
from nova_perfvm.osc.formats import document
from nova_perfvm.policy import HostShape

_FORMATS: Final[dict[str, Callable[[HostConfig], str]]] = {
    "ini": rendering.as_ini,
    "yaml": lambda config: document.as_yaml(rendering.as_document(config)),
    "json": lambda config: document.as_json(rendering.as_document(config)),
    **{tool: functools.partial(deployers.as_text, tool) for tool in deployers.FILES},
}

# Of HostRequest, as the command line has them.
_AS_GIVEN: Final = (
    "mode",
    "class_name",
    "reserve",
    "reserve_memory_gb",
    "shared_nodes",
    "read_iops",
    "write_iops",
)
# An elastic host without slots serves general VMs.
_FOR_A_CLASS: Final = ("dedicated", "mixed")
# A PiB; more is a wrong unit.
_MAX_MEMORY_GB: Final = 1024 * 1024


class ConfigHost(PolicyCommand):
    """Print nova.conf, provider.yaml and more for a compute host of a mode."""

    arguments = (
        one_of(
            flag("--local", "the machine that this runs on"),
            argument(
                "--topology",
                metavar="SHAPE|FILE",
                help="NUMA nodes x cores[x threads], such as 2x20x2; or a file with "
                "the output of lscpu -J -e, or, with the memory of each node, of "
                "nova-perfvm host collect (JSON)",
            ),
            required=True,
        ),
        argument(
            "--memory-gb",
            type=int,
            metavar="GB",
            help="memory of the whole host in GiB (default: with --local what the "
            "kernel says, else unknown)",
        ),
        file_argument(
            "--servers",
            help="the VMs on the host: JSON of openstack server show, one or several",
        ),
        argument(
            "--mode",
            choices=MODES,
            required=True,
            help="dedicated: pinned VMs only; shared: the others only; mixed: each on "
            "NUMA nodes of its own; elastic: either, as they come",
        ),
        class_argument(
            "the pinned class the host is for (default: the only one there is)"
        ),
        argument(
            "--reserve",
            type=int,
            default=0,
            metavar="N",
            help="cores of each NUMA node to keep for the host (default: %(default)s)",
        ),
        argument(
            "--reserve-memory-gb",
            type=int,
            default=RESERVED_MEMORY_GB,
            metavar="GB",
            help="memory of each NUMA node to keep for the host (default: %(default)s)",
        ),
        argument(
            "--shared-nodes",
            type=int,
            default=1,
            metavar="N",
            help="mixed: NUMA nodes, the last ones, to share (default: %(default)s)",
        ),
        *(
            argument(
                f"--{kind}-iops",
                type=int,
                metavar="N",
                help=f"{kind}s per second that the host's disks give, where the policy "
                "guarantees some",
            )
            for kind in ("read", "write")
        ),
        format_argument(
            _FORMATS,
            "default: ini, all files one after the other; kolla, osa, helm and rhoso: "
            "what Kolla-Ansible, OpenStack-Ansible, OpenStack-Helm and RHOSO read; "
            "plain: files of directories that the services read",
        ),
        file_argument(
            "--output-dir",
            metavar="DIR",
            help=f"write {', '.join(rendering.FILES)}, or the files of --format, "
            "there instead of printing",
        ),
        flag("--force", "with --output-dir: replace the files of an earlier run"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Generate the configuration; print it, or write it to files."""
        _check_output(parsed_args)
        config = generate(
            HostRequest(
                policy=self.policy(parsed_args),
                topology=_topology(parsed_args),
                **{name: getattr(parsed_args, name) for name in _AS_GIVEN},
                residents=None
                if parsed_args.servers is None
                else residents.parse_residents(
                    textfile.read(parsed_args.servers), parsed_args.servers
                ),
            ),
            policy_file(parsed_args),
        )
        if parsed_args.mode in _FOR_A_CLASS and not config.slots:
            # The worst warning is the first.
            raise HostConfigError(f"{config.warnings[0]}; --mode shared needs none")
        if parsed_args.output_dir is None:
            self.write(_FORMATS[parsed_args.format or "ini"](config))
        else:
            self._write_files(config, parsed_args)
        if parsed_args.output_dir is not None or not self.app.stdout.isatty():
            # On a terminal they stand above the configuration already.
            for warning in config.warnings:
                self.warn(warning)

    def _write_files(self, config: HostConfig, parsed_args: argparse.Namespace) -> None:
        """Write the files of a tool, or those that all tools' are made of."""
        directory = Path(parsed_args.output_dir)
        tool = parsed_args.format
        files = deployers.below(tool, config) if tool else rendering.as_files(config)
        known = deployers.known_below(tool) if tool else rendering.FILES
        output.write_files(directory, files, known, force=parsed_args.force)
        self.write("".join(f"{directory / name}\n" for name in files))


def _check_output(parsed_args: argparse.Namespace) -> None:
    if parsed_args.output_dir is None and parsed_args.force:
        raise HostConfigError("--force is for --output-dir: leave it out")
    tools = (None, *deployers.FILES)
    if parsed_args.output_dir is not None and parsed_args.format not in tools:
        raise HostConfigError(
            "--output-dir writes each file in its own format: leave --format out, or "
            f"name a tool, {', '.join(deployers.FILES)}"
        )


def _topology(parsed_args: argparse.Namespace) -> Topology:
    memory_gb = parsed_args.memory_gb
    if memory_gb is not None and not 1 <= memory_gb <= _MAX_MEMORY_GB:
        raise HostConfigError(
            f"--memory-gb {memory_gb}: expected 1 to {_MAX_MEMORY_GB} GiB"
        )
    found = (
        sysfs.read_sysfs() if parsed_args.local else _described(parsed_args.topology)
    )
    return found if memory_gb is None else found.with_memory(memory_gb)


def _described(text: str) -> Topology:
    """Take a text for a shape, or else for a file's name."""
    try:
        return from_shape(HostShape.parse(text))
    except ShapeError as exc:
        if not os.path.exists(text):  # noqa: PTH110 - pathlib raises for long names
            raise TopologyError(f"{exc}; and there is no file of that name") from exc
    content = textfile.read(text, reading.MOST_BYTES)
    if kind_of(content) == "host":
        return topology.read(reading.loads(content, text, "host"))
    return lscpu.parse_lscpu(content, text)
