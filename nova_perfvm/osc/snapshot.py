# SPDX-License-Identifier: Apache-2.0
"""``perfvm snapshot save``, and snapshots of the cloud for other commands."""

from __future__ import annotations

import argparse
import gc
from typing import Final

from nova_perfvm.cloud import snapshot as live
from nova_perfvm.cloud.host_nodes import from_database
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.recorded_policy import recorded
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PerfVMCommand, PolicyCommand, policy_name
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# Number of new objects after which Python's garbage collector runs.
_OBJECTS: Final = 1_000_000


class SaveSnapshot(PolicyCommand):
    """Save a snapshot of the cloud to a file, for commands that run without a cloud."""

    auth_required = True
    arguments = (
        opt.file("file", "file to write, - for standard output"),
        opt.NOVA_DB,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        named = policy_name(parsed_args) is not None
        digest = self.policy(parsed_args).digest if named else None
        nova_conf = parsed_args.from_nova_db
        found = look(self, policy_digest=digest, nova_conf=nova_conf)
        self.save(parsed_args.file, snapshot.dumps(found), seen_in(found))


def seen_in(found: Snapshot) -> str:
    hosts = number_of(len(found.hosts), "host")
    return f"{hosts}, {number_of(len(found.servers), 'server')}"


# Read a saved snapshot, for commands that run without a cloud.
read: Final = snapshot.load


def look(
    command: PerfVMCommand,
    saved: str | None = None,
    policy_digest: str | None = None,
    nova_conf: str | None = None,
) -> Snapshot:
    """Read a saved snapshot, or take a snapshot of the cloud; print its gaps.

    :param saved: path of the saved snapshot, - for standard input; None for the cloud
    :param policy_digest: digest of the policy to note in a new snapshot
    :param nova_conf: path of Nova's configuration, to read hosts' NUMA nodes from
        Nova's database; None for none
    :raises PerfVMError: when the file cannot be read, or the cloud or the database
        fails
    """
    # A large snapshot has millions of objects, and hardly any is garbage.  By default
    # Python collects after 700 new objects: that took a third of a command's time.
    gc.set_threshold(_OBJECTS)
    if saved is not None:
        found = snapshot.load(saved)
    else:
        command.log_in()
        # The database before requests to the cloud: a wrong file fails at once.
        with_cells = None if nova_conf is None else from_database(nova_conf)
        with ProgressLine() as progress:
            found = live.read_snapshot(
                command.cloud, policy_digest=policy_digest, progress=progress
            )
        if with_cells is not None:
            found = with_cells(found)
    command.tell(*(f"not seen: {gap}" for gap in found.gaps))
    if found.bare_metal:
        nodes = number_of(found.bare_metal, "bare-metal node")
        command.tell(f"left alone: {nodes} of Ironic")
    return found


def look_by(
    command: PolicyCommand, parsed_args: argparse.Namespace, policy: Policy
) -> Snapshot:
    """Return a snapshot; compare the policy with the snapshot's and the recorded one.

    :param parsed_args: may have the options SNAPSHOT and NOVA_DB
    :raises PerfVMError: when a file cannot be read, the cloud fails, or the command
        changes the cloud and the cloud records another policy
    """
    saved = getattr(parsed_args, "snapshot", None)
    nova_conf = getattr(parsed_args, "from_nova_db", None)
    found = look(command, saved, nova_conf=nova_conf)
    command.compare_policy(parsed_args, policy, recorded(found.aggregates))
    if found.policy_digest not in {None, policy.digest}:
        command.warn(
            f"the snapshot was taken with another policy ({found.policy_digest})"
        )
    return found
