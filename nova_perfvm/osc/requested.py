# SPDX-License-Identifier: Apache-2.0
"""Arguments that describe a new server, for commands that look for a host."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.diagnose import explain
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import Snapshot

# Only a new server takes these arguments: an existing one has its own.
_OF_NEW: Final = ("image", "boot_from_volume", "server_group")


def request_of(
    parsed_args: argparse.Namespace, snapshot: Snapshot, server: str | None = None
) -> tuple[Request, tuple[str, ...]]:
    """Return the request for a server, and remarks about it.

    :param server: ID or name of an existing server, in place of a flavor
    :raises NotFoundError: when a named flavor, image, server or group does not exist,
        or its name is not unique
    :raises RequestError: when nova-api would refuse the request
    :raises PerfVMError: when arguments of a new server come with `server`
    """
    for name in _OF_NEW if server is not None else ():
        if getattr(parsed_args, name):
            option = name.replace("_", "-")
            raise PerfVMError(
                f"--{option} is for a new server: leave it out with --server"
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
