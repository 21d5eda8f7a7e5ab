# SPDX-License-Identifier: Apache-2.0
"""What is drawn: worlds of hosts and servers, how the scheduler is set up, requests.

A world is drawn as a whole from a seed and its number before anything is built, so that
one of its requests can be asked alone.
"""

import dataclasses
import functools
import json
import pathlib
import random
from typing import Any

import yaml

HERE = pathlib.Path(__file__).parent
# Zones of a world's first hosts; hosts of none are in Nova's default zone.
ZONES = ("east", "west")
_COMMON = {"hw:cpu_policy", "hw:mem_page_size", "hw:numa_nodes"}
# One request in so many asks for a zone, hints or a server group.
_SELDOM = 5
GROUPS = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
# Sizes of a world: servers that are created, aggregates of a chapter.
_SERVERS = 6
_AGGREGATES = 4


@functools.cache
def entries(name):
    """Return what a list of this directory has, in its order."""
    return yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))


@functools.cache
def common():
    """Return flavors of small servers that most hosts take."""
    return [
        flavor
        for flavor in entries("flavors")
        if flavor["vcpus"] <= 8
        and flavor["ram"] <= 16384
        and flavor.get("specs", {}).keys() <= _COMMON
    ]


@dataclasses.dataclass(frozen=True)
class Case:
    """One request for a server.

    :ivar number: of the request in its world
    :ivar flavor: an entry of flavors.yaml
    :ivar image: an entry of images.yaml; None: a volume that is there is its root
    :ivar volume_backed: whether its root disk is a volume
    :ivar zone: availability zone that it asks for
    :ivar group: policy of the server group that it is created in
    :ivar hint: scheduler hint that names a server of the world
    :ivar at: number of the server of the world that the hint names
    :ivar server: whether that server itself is asked about, as Nova has stored its
        request: where it would go if it is moved, or is built again
    :ivar count: how many servers are asked for at once
    :ivar live: whether the model is told what Placement offers, and the dry run asks
        filters behind the one that refuses, too
    """

    number: int
    flavor: dict[str, Any]
    image: dict[str, Any] | None
    volume_backed: bool
    zone: str = ""
    group: str = ""
    hint: str = ""
    at: int = 0
    server: bool = False
    count: int = 1
    live: bool = True


@dataclasses.dataclass(frozen=True)
class Chapter:
    """How nova-scheduler is set up, and what it is asked.

    :ivar setting: an entry of settings.yaml
    :ivar aggregates: metadata and names of hosts
    :ivar disabled: name of the host whose compute is disabled; empty if none is
    :ivar down: likewise, of the host whose compute is down
    :ivar isolated: names of isolated hosts, for settings with ``isolates``
    """

    setting: dict[str, Any]
    aggregates: tuple[tuple[dict[str, str], tuple[str, ...]], ...]
    disabled: str
    down: str
    isolated: tuple[str, ...]
    cases: tuple[Case, ...]


@dataclasses.dataclass(frozen=True)
class World:
    """A cloud: its hosts and the servers that run there.

    :ivar hosts: entries of hosts.yaml, by name of the host
    :ivar zones: names of hosts, by zone
    :ivar servers: flavor of each, and the host that it is created for, or None
    :ivar pci_in_placement: whether Placement counts PCI devices
    """

    hosts: dict[str, dict[str, Any]]
    zones: dict[str, tuple[str, ...]]
    servers: tuple[tuple[dict[str, Any], str], ...]
    pci_in_placement: bool
    chapters: tuple[Chapter, ...]


def world(seed, number, *, hosts, chapters, cases):
    """Draw the world of a seed with this number.

    :param hosts: how many hosts there are
    :param cases: how many requests each of the ``chapters`` has
    """
    rng = random.Random(f"{seed}/{number}")
    shapes = rng.sample(entries("hosts"), hosts)
    named = {shape["name"]: shape for shape in shapes}
    names = list(named)
    settings = rng.sample(entries("settings"), chapters)
    # One in three is of any flavor for a certain host, and mostly fails; the others go
    # where they can.
    servers = tuple(
        (rng.choice(common()), None)
        if n % 3
        else (rng.choice(entries("flavors")), rng.choice(names))
        for n in range(_SERVERS)
    )
    return World(
        hosts=named,
        zones={zone: tuple(names[n::4]) for n, zone in enumerate(ZONES)},
        servers=servers,
        pci_in_placement=rng.random() < 0.3,
        chapters=tuple(
            _chapter(rng, setting, names, servers, range(n * cases, (n + 1) * cases))
            for n, setting in enumerate(settings)
        ),
    )


def _chapter(rng, setting, names, servers, numbers):
    aggregates = []
    for metadata in rng.sample(entries("aggregates"), _AGGREGATES):
        chosen = rng.sample(names, rng.randint(1, min(3, len(names))))
        some = rng.choice(entries("flavors"))["name"]
        told = {key: text.replace("FLAVOR", some) for key, text in metadata.items()}
        aggregates.append((told, tuple(chosen)))
    return Chapter(
        setting=setting,
        aggregates=tuple(aggregates),
        disabled=rng.choice(["", "", *names]),
        down=rng.choice(["", "", *names]),
        isolated=tuple(rng.sample(names, len(names) // 3)),
        cases=tuple(_case(rng, number, servers) for number in numbers),
    )


def _case(rng, number, servers):
    flavor = rng.choice(entries("flavors"))
    # Every other one has an image that asks for nothing, so that the flavor decides.
    image = rng.choice(entries("images"))
    if rng.random() < 0.5:
        image = entries("images")[0]
    # Nova-api wants a volume where the flavor has no disk.
    volume_backed = not flavor["disk"] or rng.random() < 0.2
    if volume_backed and rng.random() < 0.2:
        image = None
    asked = {}
    if rng.random() < 1 / _SELDOM:
        asked["zone"] = rng.choice((*ZONES, "nova"))
    if rng.random() < 1 / _SELDOM:
        asked["group"] = rng.choice(GROUPS)
    elif rng.random() < 1 / _SELDOM:
        asked["hint"] = rng.choice(("different_host", "same_host"))
    at, live = rng.randrange(_SERVERS), rng.random() < 0.5
    if rng.random() < 1 / _SELDOM:
        return Case(number, servers[at][0], None, False, at=at, server=True, live=live)
    if rng.random() < 1 / _SELDOM:
        asked["count"] = rng.randint(2, 9)
    return Case(number, flavor, image, volume_backed, at=at, live=live, **asked)


def told(*documents):
    """Return entries in one line each, as a report shows them."""
    return "\n".join(json.dumps(document) for document in documents)
