# SPDX-License-Identifier: Apache-2.0
"""The elastic hosts of a cloud, and those that are to be elastic."""

from collections.abc import Collection
from typing import NamedTuple

from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import Snapshot


class ElasticHosts(NamedTuple):
    """The hosts of a cloud that are elastic, or are to be.

    :ivar stray: name and trait of enrolled providers that are no compute host's
    """

    hosts: tuple[HostView, ...]
    stray: tuple[tuple[str, str], ...]


def elastic_hosts(
    snapshot: Snapshot, wanted: Collection[str] = frozenset()
) -> ElasticHosts:
    """Return the hosts that are enrolled, if only in part, and some others.

    :param wanted: names of the others, or of their nodes
    """
    views = [view for view in views_of(snapshot) if view.tree]
    roots = {view.root.uuid for view in views}
    return ElasticHosts(
        hosts=tuple(
            view
            for view in views
            if view.enrolled
            or view.children
            or view.isolated_by
            or view.host in wanted
            or view.root.name in wanted
        ),
        stray=tuple(
            (provider.name, trait)
            for provider in snapshot.providers
            if provider.uuid not in roots and snapshot.is_seen(provider)
            for trait in sorted(provider.elastic_traits)
        ),
    )
