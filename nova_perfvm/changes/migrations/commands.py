# SPDX-License-Identifier: Apache-2.0
"""The commands of the openstack client that make migrations."""

from shlex import quote

from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.microversions import COLD_TO_HOST, LIVE_TO_HOST


def command(move: Move) -> str:
    """Return the commands of one migration, which wait until it is over.

    nova-scheduler checks the host; nothing is forced.
    """
    server, host = quote(move.server), quote(move.target)
    if move.live:
        return (
            f"openstack --os-compute-api-version {LIVE_TO_HOST} server migrate "
            f"--live-migration --host {host} --wait {server}"
        )
    return (
        f"openstack --os-compute-api-version {COLD_TO_HOST} server migrate "
        f"--host {host} --wait {server}\n"
        f"openstack server migration confirm {server}"
    )
