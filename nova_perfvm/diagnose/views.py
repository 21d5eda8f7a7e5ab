# SPDX-License-Identifier: Apache-2.0
"""The elastic hosts of a cloud, and those that are to be elastic."""

from collections.abc import Collection

from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import Snapshot


def elastic_hosts(
    snapshot: Snapshot, wanted: Collection[str] = frozenset()
) -> tuple[HostView, ...]:
    """Return the hosts that are enrolled, if only in part, and some others.

    :param wanted: names of the others, or of their nodes
    """
    return tuple(
        view
        for view in views_of(snapshot)
        if view.tree
        and (
            view.enrolled
            or view.children
            or view.isolated_by
            or view.host in wanted
            or view.root.name in wanted
        )
    )
