# SPDX-License-Identifier: Apache-2.0
"""The RequestSpec that nova-conductor would send to nova-scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nova import context as nova_context
from nova import exception, objects
from nova.accelerator import cyborg
from nova.compute import api as compute_api
from nova.compute import vm_states
from nova.conductor.tasks import live_migrate
from nova.conf import CONF
from nova.network import neutron
from nova.pci import request as pci_request
from nova.scheduler import utils as scheduler_utils
from nova.virt import hardware
from oslo_utils import uuidutils

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.dry_run import Question
from nova_perfvm.facts.snapshot import groups
from nova_perfvm.printable import first_line

# Fields of nova/objects/request_spec.py that Nova does not store.
_NOT_STORED: Final = (
    *("ignore_hosts", "network_metadata", "request_level_params", "retry"),
    *("requested_destination", "requested_networks", "requested_resources"),
)


class RequestRefusedError(Exception):
    """Nova refuses the request before nova-scheduler sees it."""


class UnreadableCellError(PerfVMError):
    """The database of a server's cell does not answer."""


class Asked:
    """A request as nova-scheduler receives it.

    :ivar context: targets the server's cell, or no cell
    :ivar spec: the RequestSpec
    :ivar sources: {field of the spec: where its value comes from}
    :ivar notes: parts of the request that were not reproduced
    """

    def __init__(
        self,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
        source: str,
    ) -> None:
        self.context = context
        self.spec = spec
        self.sources = {
            name: source for name in spec.fields if spec.obj_attr_is_set(name)
        }
        self.notes: list[str] = []


def asked(admin: nova_context.RequestContext, question: Question) -> Asked:
    """Return the request that nova-scheduler would receive.

    :raises RequestRefusedError: when Nova refuses the request before that
    """
    try:
        if question.server:
            return _of_server(admin, question)
        return _of_new(admin, question)
    # ValueError: the count in a PCI request "alias:count" is not a number.
    except (exception.NovaException, ValueError) as exc:
        raise RequestRefusedError(f"{type(exc).__name__}: {first_line(exc)}") from exc


def _of_new(admin: nova_context.RequestContext, question: Question) -> Asked:
    """Build the RequestSpec of a new server as nova-api does.

    See ``nova.compute.api.API._create_instance``.
    """
    flavor = objects.Flavor.get_by_flavor_id(admin, question.flavor)
    image: Mapping[str, Any] = question.image or {}
    root = objects.BlockDeviceMapping(
        destination_type="volume" if question.volume_backed else "local",
        source_type="image",
        volume_size=None,
    )
    # Skip the constructor, which connects to other services.
    api = object.__new__(compute_api.API)
    booted = None if question.volume_backed else image.get("id")
    api._detect_nonbootable_image_from_properties(booted, image)
    api._validate_flavor_image(admin, booted, image, flavor, root)
    meta = objects.ImageMeta.from_dict(image)
    policy = hardware.get_pci_numa_policy_constraint(flavor, meta)
    group = None
    hints = dict(question.hints)
    if question.group:
        group = _group(admin, question.group)
        hints["group"] = [question.group]
    spec = objects.RequestSpec.from_components(
        admin,
        uuidutils.generate_uuid(),
        meta,
        flavor,
        hardware.numa_get_constraints(flavor, meta),
        pci_request.get_pci_requests_from_flavor(flavor, affinity_policy=policy),
        {"scheduler_hints": hints},
        group,
        question.zone or CONF.default_schedule_zone,
        project_id=question.project or admin.project_id,
        user_id=admin.user_id,
        request_level_params=objects.RequestLevelParams(),
    )
    if profile := flavor.extra_specs.get("accel:device_profile"):
        devices = cyborg.get_device_profile_request_groups(admin, profile)
        spec.requested_resources.extend(devices)
    spec.is_bfv = question.volume_backed
    spec.num_instances = question.count
    spec.requested_networks = objects.NetworkRequestList(objects=[])
    spec.obj_reset_changes()
    found = Asked(admin, spec, "made as nova-api makes it")
    found.sources["requested_networks"] = "none: no ports are named"
    return found


def _group(admin: nova_context.RequestContext, identity: str) -> objects.InstanceGroup:
    """Return a server group with the hosts of its members.

    ``nova.scheduler.utils.setup_instance_group`` does the same, but only for a server
    that is already a member.
    """
    group = objects.InstanceGroup.get_by_uuid(admin, identity)
    wanted = groups.FILTERS.get(group.policy)
    if wanted is not None and not scheduler_utils.validate_filter(wanted):
        raise exception.UnsupportedPolicyException(reason=f"{wanted} not configured")
    hosts_of = scheduler_utils._get_instance_group_hosts_all_cells  # noqa: SLF001
    group.hosts = hosts_of(admin, group)
    group.obj_reset_changes(["hosts"])
    return group


def _of_server(admin: nova_context.RequestContext, question: Question) -> Asked:
    """Complete a stored RequestSpec as Nova does: at boot, or in a server's move."""
    mapping = objects.InstanceMapping.get_by_instance_uuid(admin, question.server)
    spec = objects.RequestSpec.get_by_instance_uuid(admin, question.server)
    if question.zone:
        spec.availability_zone = question.zone
    if question.project:
        spec.project_id = question.project
    if mapping.cell_mapping is None:
        # The server was never scheduled.
        return _as_at_boot(admin, spec)
    context = nova_context.RequestContext.from_dict(admin.to_dict())
    nova_context.set_target_cell(context, mapping.cell_mapping)
    try:
        instance = objects.Instance.get_by_uuid(
            context, question.server, expected_attrs=["info_cache", "flavor"]
        )
    except exception.NovaException:
        raise
    except Exception as exc:
        cell = mapping.cell_mapping.name or mapping.cell_mapping.uuid
        raise UnreadableCellError(
            f"Nova's cell {cell}, which server {question.server} is in, cannot be "
            f"read: {first_line(exc)}: see nova-manage cell_v2 list_cells"
        ) from exc
    if not instance.host and instance.vm_state != vm_states.SHELVED_OFFLOADED:
        return _as_at_boot(admin, spec)
    return _as_in_a_move(context, spec, instance)


def _as_at_boot(admin: nova_context.RequestContext, spec: objects.RequestSpec) -> Asked:
    """Complete a RequestSpec as ``ConductorManager._schedule_instances`` does."""
    scheduler_utils.setup_instance_group(admin, spec)
    found = Asked(admin, spec, "stored by Nova")
    found.notes.append(
        "not stored by Nova, and so not reproduced: ports, device profiles and a host "
        "that were named when the server was created"
    )
    for name in _NOT_STORED:
        found.sources[name] = "not stored by Nova"
    return found


class _NoPorts:
    """A network API for a server without ports."""

    def get_requested_resource_for_instance(
        self, *_: Any
    ) -> tuple[list[objects.RequestGroup], objects.RequestLevelParams]:
        return [], objects.RequestLevelParams()


def _as_in_a_move(
    context: nova_context.RequestContext,
    spec: objects.RequestSpec,
    instance: objects.Instance,
) -> Asked:
    """Complete a RequestSpec as nova-conductor does for a live migration.

    Cold migrations and unshelving complete the RequestSpec alike.
    """
    task = object.__new__(live_migrate.LiveMigrationTask)
    task.context = context
    task.instance = instance
    task.request_spec = spec
    task.source = instance.host
    task.network_api = neutron.API()
    note = ""
    try:
        complete = task._get_request_spec_for_select_destinations
        spec = complete([instance.host])
    except exception.NovaException:
        raise
    except Exception as exc:  # noqa: BLE001  Neutron's, or its configuration's
        note = (
            f"not reproduced: what the server's ports ask for, as Neutron fails: "
            f"{first_line(exc)}"
        )
        task.network_api = _NoPorts()
        spec = task._get_request_spec_for_select_destinations([instance.host])
    spec.ignore_hosts = [instance.host] if instance.host else []
    found = Asked(context, spec, "stored by Nova")
    found.notes += [note] * bool(note)
    found.sources |= {
        "ignore_hosts": "the server's host",
        "instance_group": "Nova, today",
        "network_metadata": "the server's networks as Nova knows them",
        "requested_networks": "the server's networks as Nova knows them",
        "request_level_params": note or "the server's ports in Neutron",
        "requested_destination": "the server's cell",
        "requested_resources": note or "the server's ports in Neutron",
        "retry": "none, as at the first attempt",
    }
    return found
