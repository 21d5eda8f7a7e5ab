# SPDX-License-Identifier: Apache-2.0
"""Rules that find the servers and hosts that a bug hits; files of bugs name a rule.

Each rule is a pure function of a cloud, one of its hosts, and the parameters of the
bug's file.  The caller, :mod:`nova_perfvm.known_bugs.hits`, has checked that the host's
release has the bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import ComputeHost
from nova_perfvm.known_bugs.facts import CloudFacts, Hit
from nova_perfvm.known_bugs.releases import Release
from nova_perfvm.placement.settings import is_true

Parameters = Mapping[str, str]
_RUNNING: Final = frozenset({"ACTIVE", "PAUSED"})


class Rule(NamedTuple):
    """A way to find affected servers and hosts.

    :ivar find: yields the hits on a host
    :ivar parameters: names of the required parameters; None for any names
    :ivar of_all: whether every pinned VM is affected, so that the bug matters only for
        migrations, and is reported once instead of for each server
    """

    find: Callable[[CloudFacts, ComputeHost, Parameters], Iterator[Hit]]
    parameters: frozenset[str] | None = frozenset()
    of_all: bool = False


def _started_before(
    facts: CloudFacts, host: ComputeHost, given: Parameters
) -> Iterator[Hit]:
    """Yield running pinned VMs that were started by Nova before a release.

    Their XML lacks an element of ``cputune`` that the release added.  Nova records when
    it built, moved or unshelved a server, but not when it rebooted the server.
    """
    came, date = Release.parse(given["release"]), given["date"]
    present = facts.present(host)
    for server in facts.servers(host):
        if server.status not in _RUNNING:
            continue
        started = (server.launched or server.created)[:10]
        if vm := facts.runs(host, server):
            if given["element"] not in vm.tuned:
                why = f"its XML has no {given['element']}"
                yield Hit(host.host, server, why, certain=True)
        elif present is not None and present < came:
            why = f"Nova {present} has started it"
            yield Hit(host.host, server, why, certain=True)
        elif started and started < date:
            untouched = bool(server.updated) and server.updated[:10] < date
            why = f"started on {started}, before Nova {came}"
            why += "" if untouched else ", unless a hard reboot followed"
            yield Hit(host.host, server, why, certain=untouched)


def _created_before(
    facts: CloudFacts, host: ComputeHost, given: Parameters
) -> Iterator[Hit]:
    """Yield pinned VMs that were created before a date."""
    for server in facts.servers(host):
        if server.created and server.created[:10] < given["date"]:
            why = f"created on {server.created[:10]}"
            yield Hit(host.host, server, why, certain=False)


def _extra_spec(
    facts: CloudFacts, host: ComputeHost, given: Parameters
) -> Iterator[Hit]:
    """Yield pinned VMs whose flavor has an extra spec with the given value."""
    for server in facts.servers(host):
        if server.extra_specs.get(given["key"]) == given["value"]:
            why = f"its flavor has {given['key']}={given['value']}"
            yield Hit(host.host, server, why, certain=False)


def _options(facts: CloudFacts, host: ComputeHost, given: Parameters) -> Iterator[Hit]:
    """Yield the host if its collected nova.conf has all the given values.

    An empty value means an unset option.
    """
    seen = facts.collected.get(host.host)
    if seen is None or seen.options is None:
        return
    for name, wanted in given.items():
        section, _, option = name.partition(".")
        value = seen.options.get((section, option), "").lower()
        if not (is_true(value) if wanted == "true" else value == wanted):
            return
    why = ", ".join(f"{name} is {value or 'not set'}" for name, value in given.items())
    yield Hit(host.host, None, why, certain=True)


def _page_sizes(
    facts: CloudFacts, host: ComputeHost, _given: Parameters
) -> Iterator[Hit]:
    """Yield pinned VMs without a page size on NUMA nodes with several page sizes."""
    mixed = {c.id for c in host.cells if sum(p.total > 0 for p in c.mempages) > 1}
    for server in facts.servers(host):
        nodes = {cell.host_node for cell in server.cells or ()}
        if server.page_size_kb is None and nodes & mixed:
            why = "its NUMA node has pages of several sizes, its flavor names no size"
            yield Hit(host.host, server, why, certain=False)


def _shared_sets_differ(
    facts: CloudFacts, host: ComputeHost, _given: Parameters
) -> Iterator[Hit]:
    """Yield unpinned VMs if another host has a different set of shared CPUs."""
    if host.host in facts.shared_sets and len(facts.different_sets) > 1:
        for server in facts.servers(host, pinned=False):
            why = "cpu_shared_set of another host differs"
            yield Hit(host.host, server, why, certain=False)


def _pinned(facts: CloudFacts, host: ComputeHost, _given: Parameters) -> Iterator[Hit]:
    for server in facts.servers(host):
        yield Hit(host.host, server, "it owns CPUs", certain=False)


def _nodes_in_placement(
    facts: CloudFacts, host: ComputeHost, given: Parameters
) -> Iterator[Hit]:
    """Yield pinned VMs on hosts whose NUMA nodes are providers in Placement."""
    tree = facts.snapshot.trees.get(host.provider, ())
    if any(const.RC_CELL_CPU in provider.inventories for provider in tree):
        yield from _pinned(facts, host, given)


RULES: Final = {
    "started-before": Rule(_started_before, frozenset({"release", "date", "element"})),
    "created-before": Rule(_created_before, frozenset({"date"})),
    "extra-spec": Rule(_extra_spec, frozenset({"key", "value"})),
    "options": Rule(_options, None),
    "page-sizes": Rule(_page_sizes),
    "shared-sets-differ": Rule(_shared_sets_differ),
    "pinned": Rule(_pinned, of_all=True),
    "nodes-in-placement": Rule(_nodes_in_placement, of_all=True),
}
