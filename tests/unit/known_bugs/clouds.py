# SPDX-License-Identifier: Apache-2.0
"""Clouds of the releases of Nova that the project runs on."""

import dataclasses

from tests.unit.facts.snapshot.clouds import Cloud

# {release: (newest microversion, service version of its computes)}
RELEASES = {
    "31.3.1": ("2.100", 68),
    "32.2.1": ("2.100", 70),
    "33.0.2": ("2.103", 72),
    "34.0.0": ("2.104", 74),
}
NEW = "2026-09-01T10:00:00Z"
OLD = "2026-01-01T10:00:00Z"


def cloud(release, started=NEW, updated=NEW):
    """Return a cloud of two hosts whose VMs were started at some time.

    :param release: None where nothing tells it
    """
    made = Cloud()
    made.parts["microversion"] = RELEASES[release][0] if release else ""
    for name in ("hp1", "hp2"):
        made.add_host(name)
    made.add_host("g1", "shared")
    times = {"created": started, "launched": started, "updated": updated}
    made.add_hp("a", "hp1", **times)
    made.add_hp("b", "hp1", 20, node=1, **times)
    made.add_general("c", "g1", **times)
    return made


def with_services(snapshot, release, *hosts):
    """Return a snapshot in which Nova's database has told versions of hosts."""
    version = RELEASES[release][1]
    return dataclasses.replace(
        snapshot,
        hosts=tuple(
            dataclasses.replace(host, service_version=version)
            if host.host in hosts or not hosts
            else host
            for host in snapshot.hosts
        ),
    )
