# SPDX-License-Identifier: Apache-2.0
"""Look up the record of a request's server in Nova's databases.

A request does not say whether it creates a server or moves one; scheduler hints, which
users set, may lie.  The server's record tells: a new server is in no cell yet, or has
no host; a server that moves has its source host, or is shelved and offloaded.  The
record keeps the old flavor until a resize ends, so it shows the old size and class.
"""

from __future__ import annotations

from typing import TypeAlias

from nova import context as nova_context
from nova import exception, objects
from nova.compute import task_states, vm_states
from nova.objects.fields import PCINUMAAffinityPolicy
from nova.pci import request as pci_request
from oslo_log import log as logging

from nova_perfvm import constants as const

LOG = logging.getLogger(__name__)

Devices: TypeAlias = "list[objects.InstancePCIRequest]"


def find(instance_uuid: str) -> objects.Instance | None:
    """Return a server's current record, with flavor and PCI requests.

    None for a server without a record in any cell: a new or a deleted server.  The
    lookup costs two database queries.
    """
    context = nova_context.get_admin_context()
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, instance_uuid)
        if mapping.cell_mapping is None:
            return None
        with nova_context.target_cell(context, mapping.cell_mapping) as cell_context:
            return objects.Instance.get_by_uuid(
                cell_context, instance_uuid, expected_attrs=["flavor", "pci_requests"]
            )
    except (exception.InstanceMappingNotFound, exception.InstanceNotFound):
        return None


def rebuilt_on(instance_uuid: str) -> tuple[str, str] | None:
    """Return host and node of a server during its rebuild, at other times None.

    Nova evacuates by rebuilding: for an evacuation the host is the one that failed.
    """
    instance = find(instance_uuid)
    if instance is None or instance.task_state != task_states.REBUILDING:
        return None
    return instance.host, instance.node


def migrates_live(spec_obj: objects.RequestSpec) -> bool:
    """Return whether a request is for a live migration.

    Costs two database queries, for moves only.
    """
    if "ignore_hosts" not in spec_obj or not spec_obj.ignore_hosts:
        # A live migration always excludes the source host.
        return False
    instance = find(spec_obj.instance_uuid)
    return instance is not None and instance.task_state == task_states.MIGRATING


def devices_claimed(spec_obj: objects.RequestSpec) -> Devices | None:
    """Return the PCI requests that nova-compute claims in place of a request's own.

    None for a new server, for which nova-compute claims the request's.  To unshelve a
    server, nova-compute claims the requests in the server's record.  For any other move
    nova-compute makes the flavor's requests anew from [pci]alias, without the NUMA
    policy of flavor and image: ResourceTracker._move_claim.  An alias that
    nova-scheduler does not know is assumed to have Nova's default policy.

    Costs two database queries.
    """
    instance = _built(spec_obj.instance_uuid)
    if instance is None:
        return None
    recorded = list(instance.pci_requests.requests)
    if instance.vm_state == vm_states.SHELVED_OFFLOADED:
        return recorded
    ports = [one for one in recorded if one.source == one.NEUTRON_PORT]
    try:
        rebuilt = pci_request.get_pci_requests_from_flavor(spec_obj.flavor).requests
    except (exception.PciRequestAliasNotDefined, exception.PciInvalidAlias):
        return with_policy(spec_obj.pci_requests.requests, PCINUMAAffinityPolicy.LEGACY)
    return [*rebuilt, *ports]


def with_policy(asked: Devices, policy: str) -> Devices:
    """Return copies of PCI requests, with a new NUMA policy except for ports."""
    copies = [one.obj_clone() for one in asked]
    for one in copies:
        if one.source != one.NEUTRON_PORT:
            one.numa_policy = policy
    return copies


def _built(instance_uuid: str) -> objects.Instance | None:
    """Return the record of a server with a host, or of an offloaded one; else None."""
    instance = find(instance_uuid)
    if instance is None or not (
        instance.host or instance.vm_state == vm_states.SHELVED_OFFLOADED
    ):
        return None
    return instance


def running_vcpus(spec_obj: objects.RequestSpec) -> int | None:
    """Return the current vCPUs of a request's server.

    None for a new server, and for a server of another class.  Costs two database
    queries.  If these fail, return the request's vCPUs, as if the request moved the
    server: a wrongly admitted new server can be deleted, but refusing to evacuate a
    server would lose it.
    """
    try:
        instance = _built(spec_obj.instance_uuid)
    except Exception as exc:  # noqa: BLE001  any failure leaves the server unknown
        LOG.warning(
            "Cannot look up whether server %s exists (%s), so it is taken for one that "
            "runs with the %d vCPUs of the request.",
            spec_obj.instance_uuid,
            exc,
            spec_obj.flavor.vcpus,
        )
        return int(spec_obj.flavor.vcpus)
    if instance is None:
        return None
    has, wants = instance.flavor, spec_obj.flavor
    if has.extra_specs.get(const.CLASS_KEY) != wants.extra_specs.get(const.CLASS_KEY):
        return None
    return int(has.vcpus)
