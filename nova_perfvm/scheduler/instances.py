# SPDX-License-Identifier: Apache-2.0
"""Read from Nova's databases what a request does not prove about its server.

A request says what its user asked for, scheduler hints included, but not whether it
makes a server or moves one.  The record of the server does: that of a new server is
in no cell yet, or has no host; that of a server that is moved has the source host, or
says that it is shelved and offloaded.  The record keeps the old flavor until a resize
is done, so it also shows a resize from another size or class.
"""

from __future__ import annotations

from nova import context as nova_context
from nova import exception, objects
from nova.compute import task_states, vm_states
from oslo_log import log as logging

from nova_perfvm import constants as const

LOG = logging.getLogger(__name__)


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


def migrates_live(spec_obj: objects.RequestSpec) -> bool:
    """Return whether a request is that of a live migration.

    It costs two queries, for moves alone.
    """
    if "ignore_hosts" not in spec_obj or not spec_obj.ignore_hosts:
        # Nova names the source there.
        return False
    instance = find(spec_obj.instance_uuid)
    return instance is not None and instance.task_state == task_states.MIGRATING


def running_vcpus(spec_obj: objects.RequestSpec) -> int | None:
    """Return how many vCPUs the server has in the class that its request names.

    None for a new server, and for one of another class.  It costs two queries.
    Where they fail nobody can tell, and the request is taken for a move: a new
    server of a former size can be deleted, one that cannot be evacuated is lost.
    """
    try:
        instance = find(spec_obj.instance_uuid)
    except Exception as exc:  # noqa: BLE001  whatever it is, nobody can tell
        LOG.warning(
            "Cannot look up whether server %s exists (%s), so it is taken for one that "
            "runs with the %d vCPUs of the request.",
            spec_obj.instance_uuid,
            exc,
            spec_obj.flavor.vcpus,
        )
        return int(spec_obj.flavor.vcpus)
    if instance is None or not (
        instance.host or instance.vm_state == vm_states.SHELVED_OFFLOADED
    ):
        return None
    has, wants = instance.flavor, spec_obj.flavor
    if has.extra_specs.get(const.CLASS_KEY) != wants.extra_specs.get(const.CLASS_KEY):
        return None
    return int(has.vcpus)
