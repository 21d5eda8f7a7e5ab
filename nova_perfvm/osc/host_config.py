# SPDX-License-Identifier: Apache-2.0
"""``host config``."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import kind_of
from nova_perfvm.exceptions import ShapeError
from nova_perfvm.generate.formats import document
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
)
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.observed import topology
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand, policy_file
from nova_perfvm.policy import HostShape

# Each format's files of a host: {path: text}.
_FILES: Final[dict[str, Callable[[HostConfig], dict[str, str]]]] = {
    "ini": rendering.as_files,
    **{tool: functools.partial(deployers.files_of, tool) for tool in deployers.TOOLS},
}
# The format that prints one JSON document, not files.
_JSON: Final = "json"

# Modes in which a host without slots is useless; an elastic host without slots
# serves general VMs.
_FOR_A_CLASS: Final = ("dedicated", "mixed")


def _iops_argument(kind: str) -> opt.Argument:
    return opt.option(
        f"--{kind}-iops N",
        f"{kind}s per second that the host's disks give, for policies that guarantee "
        "IOPS",
        type=opt.count,
    )


class ConfigHost(PolicyCommand):
    """Print nova.conf, provider.yaml and related files for a compute host."""

    arguments = (
        opt.option(
            "--topology SHAPE|FILE",
            "NUMA nodes x cores[x threads], such as 2x20x2; or a file with the "
            "output of lscpu -J -e, or, with the memory of each node, of nova-perfvm "
            "host collect (JSON)",
            required=True,
        ),
        opt.option(
            "--memory-gb GB",
            "memory of the whole host in GiB (default: of the file)",
            type=opt.count,
        ),
        opt.option(
            "--mode",
            "dedicated: pinned VMs only; shared: other VMs only; mixed: each kind "
            "on NUMA nodes of its own; elastic: either kind, but one at a time",
            choices=MODES,
            required=True,
        ),
        opt.vm_class(
            "the pinned class that the host is for (default: the policy's only one)"
        ),
        opt.option(
            "--reserve N",
            "cores of each NUMA node to keep for the host (default: %(default)s)",
            type=int,
            default=0,
        ),
        opt.option(
            "--reserve-memory-gb GB",
            "memory of each NUMA node to keep for the host (default: %(default)s)",
            type=int,
            default=RESERVED_MEMORY_GB,
        ),
        opt.option(
            "--shared-nodes N",
            "mixed: number of NUMA nodes, counted from the last, for shared CPUs "
            "(default: %(default)s)",
            type=int,
            default=1,
        ),
        _iops_argument("read"),
        _iops_argument("write"),
        opt.formats(
            (*_FILES, _JSON),
            "default: %(default)s, all files one after the other; kolla, osa, helm and "
            "rhoso: files for Kolla-Ansible, OpenStack-Ansible, OpenStack-Helm and "
            "RHOSO; plain: files for the configuration directories of the services",
        ),
        opt.file(
            "--output-dir",
            "write the files of the format to this directory instead of printing",
            metavar="DIR",
        ),
        opt.flag("--force", "with --output-dir: replace the files of an earlier run"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        written = parsed_args.output_dir
        if parsed_args.format == _JSON and written is not None:
            raise HostConfigError(
                "--output-dir writes each file in its own format: expected --format "
                f"{', '.join(_FILES)}"
            )
        given = {
            one.name: getattr(parsed_args, one.name) for one in fields(HostRequest)
        }
        given["policy"] = self.policy(parsed_args)
        given["topology"] = _topology(parsed_args)
        config = generate(HostRequest(**given), policy_file(parsed_args))
        if parsed_args.mode in _FOR_A_CLASS and not config.slots:
            # The first warning is the most severe.
            raise HostConfigError(f"{config.warnings[0]}; --mode shared needs no slot")
        self._tell(config, parsed_args)
        for warning in config.warnings:
            self.warn(warning)

    def _tell(self, config: HostConfig, parsed_args: argparse.Namespace) -> None:
        form = parsed_args.format
        if form == _JSON:
            self.write(document.as_json(rendering.as_document(config)))
            return
        files = _FILES[form](config)
        if parsed_args.output_dir is None:
            self.write(rendering.as_text(files))
            return
        directory = Path(parsed_args.output_dir)
        files = {path.lstrip("/"): text for path, text in files.items()}
        known = [
            path.lstrip("/") for path in deployers.TOOLS.get(form, rendering.FILES)
        ]
        output.write_files(directory, files, known, force=parsed_args.force)
        self.write("".join(f"{directory / name}\n" for name in files))


def _topology(parsed_args: argparse.Namespace) -> Topology:
    found = _described(parsed_args.topology)
    memory_gb = parsed_args.memory_gb
    return found if memory_gb is None else found.with_memory(memory_gb)


def _described(text: str) -> Topology:
    """Return the topology of a shape such as 2x20x2, or else of a file."""
    try:
        return from_shape(HostShape.parse(text))
    except ShapeError as exc:
        if not os.path.exists(text):  # noqa: PTH110 - pathlib raises for long names
            raise TopologyError(f"{exc}; and there is no such file") from exc
    content = textfile.read(text, reading.MOST_BYTES)
    if kind_of(content) == "host":
        return topology.read(reading.loads(content, text, "host"))
    return lscpu.parse_lscpu(content, text)
