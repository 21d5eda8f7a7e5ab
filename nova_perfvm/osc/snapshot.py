# SPDX-License-Identifier: Apache-2.0
"""``perfvm snapshot save``, and snapshots of the cloud for other commands."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from nova_perfvm.cloud import snapshot as live
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.hypervisor import Hypervisor, by_host
from nova_perfvm.facts.recorded_policy import recorded
from nova_perfvm.facts.snapshot import COLLECTED, Snapshot
from nova_perfvm.generate import inventory
from nova_perfvm.osc.base import (
    PerfVMCommand,
    PolicyCommand,
    argument,
    file_argument,
    policy_name,
)
from nova_perfvm.osc.collect import hypervisors
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# The greatest age of a collected file, and how far the clocks of hosts may differ.
_VALID: Final = timedelta(days=30)
_CLOCKS: Final = timedelta(hours=1)
# Number of new objects after which Python's garbage collector runs.
_OBJECTS: Final = 1_000_000

SNAPSHOT: Final = file_argument(
    "--snapshot",
    help="read this file of openstack perfvm snapshot save (- for standard input), not "
    "the cloud",
)
NOVA_DB: Final = argument(
    "--from-nova-db",
    metavar="NOVA_CONF",
    nargs="?",
    const="/etc/nova/nova.conf",
    help="read the hosts' NUMA nodes and PCI devices from Nova's database, as "
    "nova-scheduler does: on a controller, where Nova is installed (default file: "
    "%(const)s)",
)
INVENTORY: Final = file_argument(
    "--inventory",
    help="inventory file with the NUMA nodes of hosts, used for hosts whose NUMA nodes "
    "were not read from Nova's database",
)


class SaveSnapshot(PolicyCommand):
    """Save a snapshot of the cloud to a file, for commands that run without a cloud."""

    auth_required = True
    arguments = (
        file_argument("file", help="file to write, - for standard output"),
        NOVA_DB,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        named = policy_name(parsed_args) is not None
        digest = self.policy(parsed_args).digest if named else None
        nova_conf = parsed_args.from_nova_db
        found = look(self, policy_digest=digest, nova_conf=nova_conf)
        if parsed_args.file == "-":
            self.write(snapshot.dumps(found))
            return
        textfile.replace(parsed_args.file, snapshot.dumps(found), private=True)
        self.write(f"{parsed_args.file}: {seen_in(found)}\n")


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
        with_cells = None if nova_conf is None else _nova_database(nova_conf)
        with ProgressLine() as progress:
            found = live.read_snapshot(
                command.cloud, policy_digest=policy_digest, progress=progress
            )
        if with_cells is not None:
            found = with_cells(found)
    for gap in found.gaps:
        command.app.stderr.write(f"not seen: {gap}\n")
    if found.bare_metal:
        nodes = number_of(found.bare_metal, "bare-metal node")
        command.app.stderr.write(f"left alone: {nodes} of Ironic\n")
    return found


def with_nodes(
    command: PerfVMCommand, parsed_args: argparse.Namespace, policy: Policy
) -> Callable[[Snapshot], Snapshot]:
    """Return a function that adds hosts' NUMA nodes to a snapshot.

    The nodes come from --from-nova-db, --collected or --inventory; a disagreement of
    two sources is printed once.

    :raises PerfVMError: when a file or the database cannot be read
    """
    nova_conf, path = parsed_args.from_nova_db, parsed_args.inventory
    told = inventory.load(path, policy) if path is not None else {}
    collected = hypervisors(parsed_args, policy, parsed_args.nova_conf)
    database = _nova_database(nova_conf) if nova_conf is not None else None
    said: set[str] = set()

    def complete(found: Snapshot) -> Snapshot:
        if database is not None:
            found = database(found)
        found = _with_collected(found, collected)
        hosts = {host.host for host in found.hosts}
        mine = {host: cells for host, cells in told.items() if host in hosts}
        found, remarks = inventory.with_inventory(found, mine)
        for remark in {*remarks} - said:
            command.app.stderr.write(f"{remark}\n")
        said.update(remarks)
        return found

    return complete


def _with_collected(found: Snapshot, collected: Iterable[Hypervisor]) -> Snapshot:
    """Return a snapshot with the NUMA nodes that were collected on its hosts.

    :raises PerfVMError: when the nodes differ from Nova's, or a file is older than 30
        days
    """
    of_hosts, _ = by_host(found.hosts, collected)
    cells = {name: seen.dedicated().cells for name, seen in of_hosts.items()}
    found, doubts = inventory.with_inventory(found, cells, COLLECTED)
    now = datetime.now(UTC)
    doubts += tuple(
        f"{seen.source} was written at {seen.taken_at}, and now it is "
        f"{now.isoformat(timespec='seconds')}"
        for seen in of_hosts.values()
        if not -_CLOCKS <= now - datetime.fromisoformat(seen.taken_at) <= _VALID
    )
    if doubts:
        raise PerfVMError(
            f"{'; '.join(doubts)}: name the host's nova.conf with --nova-conf, run "
            "nova-perfvm host collect there again, or use --from-nova-db on a "
            "controller"
        )
    return found


def _nova_database(nova_conf: str) -> Callable[[Snapshot], Snapshot]:
    """Read Nova's database; return a function that adds its facts to a snapshot.

    The facts are hosts' NUMA nodes and PCI devices.

    :raises PerfVMError: when Nova is not installed, or its configuration or database
        cannot be read
    """
    try:
        from nova_perfvm.cloud import nova_database  # noqa: PLC0415
    except ImportError as exc:
        raise PerfVMError(
            f"--from-nova-db: Nova is not installed beside this command ({exc}): run "
            "it on a controller, in Nova's environment"
        ) from exc
    nova_database.configure(nova_conf)
    skipped: list[str] = []
    nodes = nova_database.compute_nodes(skipped)
    more: list[str] = []
    versions = nova_database.service_versions(more)
    devices = nova_database.server_devices(more)
    # A cell that is down fails in each of the three: report it once.
    skipped += [why for why in dict.fromkeys(more) if why not in skipped]

    def with_cells(found: Snapshot) -> Snapshot:
        gaps = tuple(f"NUMA nodes, PCI: {why}" for why in skipped)
        found = replace(found, gaps=found.gaps + gaps)
        return nova_database.with_cells(found, nodes, versions, devices)

    return with_cells


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
