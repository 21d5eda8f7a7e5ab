# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes of hosts, which no API shows: from Nova's database, or from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import Hypervisor, by_host
from nova_perfvm.facts.snapshot import COLLECTED, Snapshot
from nova_perfvm.generate import inventory
from nova_perfvm.policy import Policy

# The greatest age of a collected file, and how far the clocks of hosts may differ.
_VALID: Final = timedelta(days=30)
_CLOCKS: Final = timedelta(hours=1)


def hypervisors(
    paths: Iterable[str], policy: Policy | None = None, conf: str | None = None
) -> tuple[Hypervisor, ...]:
    """Read files of ``host collect``.

    :param policy: tells by a VM's class whether the VM should be pinned
    :param conf: path of the nova.conf of these hosts
    :raises PerfVMError: when a file is not valid
    """
    if not paths:
        return ()
    # Most runs name no file: they need not load these modules.
    from nova_perfvm.cloud.nova_rules import refusal_of  # noqa: PLC0415
    from nova_perfvm.measure.collect import hypervisor  # noqa: PLC0415

    return tuple(hypervisor.load(path, policy, conf, refusal_of) for path in paths)


def from_database(nova_conf: str) -> Callable[[Snapshot], Snapshot]:
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
    versions = nova_database.service_versions(skipped)
    devices = nova_database.server_devices(skipped)
    # A cell that is down fails in each of the three: report it once.
    whys = dict.fromkeys(skipped)

    def with_cells(found: Snapshot) -> Snapshot:
        gaps = tuple(f"NUMA nodes, PCI: {why}" for why in whys)
        found = replace(found, gaps=found.gaps + gaps)
        return nova_database.with_cells(found, nodes, versions, devices)

    return with_cells


def completing(
    policy: Policy,
    nova_conf: str | None,
    inventory_file: str | None,
    collected: Iterable[Hypervisor],
    tell: Callable[[str], object],
) -> Callable[[Snapshot], Snapshot]:
    """Return a function that adds hosts' NUMA nodes to a snapshot.

    :param nova_conf: path of Nova's configuration, which names its database
    :param tell: prints a disagreement of two sources, each once
    :raises PerfVMError: when a file or the database cannot be read
    """
    told = {} if inventory_file is None else inventory.load(inventory_file, policy)
    database = None if nova_conf is None else from_database(nova_conf)
    said: set[str] = set()

    def complete(found: Snapshot) -> Snapshot:
        if database is not None:
            found = database(found)
        found = with_collected(found, collected)
        hosts = {host.host for host in found.hosts}
        mine = {host: cells for host, cells in told.items() if host in hosts}
        found, remarks = inventory.with_inventory(found, mine)
        for remark in {*remarks} - said:
            tell(remark)
        said.update(remarks)
        return found

    return complete


def with_collected(found: Snapshot, collected: Iterable[Hypervisor]) -> Snapshot:
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
