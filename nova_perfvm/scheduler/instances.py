# SPDX-License-Identifier: Apache-2.0
"""The record that Nova keeps of a server, which no user writes.

A request says what its user asked for, scheduler hints included.  What a server
is, where it is and what is being done to it stands in the database of its cell.
"""

from __future__ import annotations

from nova import context as nova_context
from nova import exception, objects
from nova.compute import task_states


def find(instance_uuid: str) -> objects.Instance | None:
    """Return a server's record, its flavor included, as it is now.

    None for a server that has no record in any cell: one that is being created,
    or that is gone.  It takes two queries, so ask only where it matters.
    """
    context = nova_context.get_admin_context()
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, instance_uuid)
        if mapping.cell_mapping is None:
            return None
        with nova_context.target_cell(context, mapping.cell_mapping) as cell_context:
            return objects.Instance.get_by_uuid(
                cell_context, instance_uuid, expected_attrs=["flavor"]
            )
    except (exception.InstanceMappingNotFound, exception.InstanceNotFound):
        return None


def rebuilt_on(instance_uuid: str) -> tuple[str, str] | None:
    """Return host and node of a server that is being rebuilt where it is.

    None if it is not.  An evacuation is a rebuild, too, and gives the host that
    the server leaves.
    """
    instance = find(instance_uuid)
    if instance is None or instance.task_state != task_states.REBUILDING:
        return None
    return instance.host, instance.node
