# SPDX-License-Identifier: Apache-2.0
"""How a new server is described to commands that look for a place for it."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.diagnose import explain
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.osc.base import Arguments, argument, flag

# Beside its flavor.
REQUEST: Final[Arguments] = (
    argument("--image", metavar="IMAGE", help="boot from this image"),
    flag(
        "--boot-from-volume",
        "the root disk is a volume (default: as the flavor's disk says)",
    ),
    argument(
        "--availability-zone",
        metavar="ZONE",
        default="",
        help="availability zone that the server asks for",
    ),
    argument("--project", metavar="ID", default="", help="ID of the server's project"),
    argument(
        "--server-group",
        metavar="GROUP",
        help="server group that the new server is created in, by name or ID",
    ),
)
# A server that is there has its own of these.
_OF_NEW: Final = ("image", "boot_from_volume", "server_group")


def request_of(
    parsed_args: argparse.Namespace, snapshot: Snapshot, server: str | None = None
) -> tuple[Request, tuple[str, ...]]:
    """Return what is asked for, and remarks about it.

    :param server: ID or name of one that is there, in place of a flavor
    :raises NotFoundError: when there is no such thing, or more than one
    :raises RequestError: when nova-api would refuse it
    :raises PerfVMError: when it is told of a server that is there what that has
    """
    for name in _OF_NEW if server is not None else ():
        if getattr(parsed_args, name):
            option = name.replace("_", "-")
            raise PerfVMError(
                f"--{option} is for a new server: one that is there has its own"
            )
    return explain.request_of(
        snapshot,
        flavor=parsed_args.flavor,
        image=parsed_args.image,
        server=server,
        volume_backed=parsed_args.boot_from_volume or None,
        availability_zone=parsed_args.availability_zone,
        project=parsed_args.project,
        group=parsed_args.server_group,
    )
