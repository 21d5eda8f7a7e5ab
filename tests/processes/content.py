# SPDX-License-Identifier: Apache-2.0
"""Create a new cloud's endpoints, network, image, flavors and aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import converge, policy_record, sync
from nova_perfvm.cloud import flavors as flavors_of_cloud
from nova_perfvm.cloud.api import API
from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import Policy
from tests.processes.hostspec import PretendedHost
from tests.processes.settings import (
    REGION,
    SERVICE_PROJECT,
    SERVICE_USER,
    SandboxSettings,
)

NETWORK: Final = "private"
IMAGE: Final = "guest"
CIDR: Final = "10.20.0.0/16"

_IMAGE_BYTES: Final = b"\0" * 65536


def make_catalogue(connection: Any, settings: SandboxSettings) -> None:
    """Create the services' user and endpoints; the bootstrap made only keystone's own.

    :param connection: an SDK connection of the administrator
    """
    identity = connection.identity
    project = identity.find_project(SERVICE_PROJECT) or identity.create_project(
        name=SERVICE_PROJECT, domain_id="default"
    )
    user = identity.find_user(SERVICE_USER) or identity.create_user(
        name=SERVICE_USER, password=settings.password, domain_id="default"
    )
    for name in ("admin", "service"):
        role = identity.find_role(name) or identity.create_role(name=name)
        identity.assign_project_role_to_user(project, user, role)
    known = {service.type for service in identity.services()}
    for kind, name, url in (
        ("placement", "placement", settings.url("placement")),
        ("image", "glance", settings.url("glance")),
        ("compute", "nova", settings.url("nova-api", "/v2.1")),
        ("network", "neutron", settings.url("neutron")),
        ("block-storage", "cinder", settings.url("cinder", "/v3")),
    ):
        if kind in known or not settings.has(name):
            continue
        service = identity.create_service(name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(
                service_id=service.id, interface=interface, region_id=REGION, url=url
            )


def make_content(
    connection: Any,
    policy: Policy,
    hosts: Sequence[PretendedHost],
    tell: Callable[[str], None],
) -> None:
    """Create missing content through the APIs, and enroll hosts.

    :param connection: an SDK connection of the administrator
    :param tell: called with a line for each finished step
    :raises CloudError: when Nova or Placement refuses a request
    :raises RefusedError: when a host cannot be enrolled
    """
    _make_network(connection.network)
    _make_image(connection.image, policy)
    tell(f"network {NETWORK}, image {IMAGE}")
    api = API(connection)
    flavors = generate_flavors(policy)
    found = flavors_of_cloud.plan(api, flavors, policy=policy)
    sync.make(api, flavors_of_cloud.apply, found.changes)
    tell(f"flavors {', '.join(flavor.name for flavor in flavors)}")
    policy_record.record(api, policy.digest, "the sandbox's policy")
    if policy.managed_hosts == "labelled":
        _label(connection.compute, policy, hosts)
    if host_scheme_of(policy).by_slots:
        for host in hosts:
            # As host enroll --slots 0 does for shared hosts: no API shows cpu sets.
            slots = 0 if host.mode == "shared" else None
            planner = partial(plan_enroll, policy, slots=slots)
            converge.change_host(api, host.name, planner)
        tell(f"{len(hosts)} hosts enrolled")


def _make_network(network: Any) -> None:
    if network.find_network(NETWORK) is None:
        made = network.create_network(name=NETWORK, is_shared=True)
        network.create_subnet(
            name=NETWORK,
            network_id=made.id,
            ip_version=4,
            cidr=CIDR,
            is_dhcp_enabled=False,
        )


def _make_image(image: Any, policy: Policy) -> None:
    if image.find_image(IMAGE) is None:
        image.create_image(
            IMAGE,
            data=_IMAGE_BYTES,
            disk_format="raw",
            container_format="bare",
            visibility="public",
            **generate_image_properties(policy),
        )


def _label(compute: Any, policy: Policy, hosts: Sequence[PretendedHost]) -> None:
    """Label dedicated and shared hosts with their class by aggregates."""
    for host in hosts:
        if host.mode not in {"dedicated", "shared"}:
            continue
        name = host.class_name or policy.pinned_classes[0].name
        if host.mode == "shared":
            name = policy.default_class.name
        aggregate = compute.find_aggregate(name) or compute.create_aggregate(name=name)
        compute.set_aggregate_metadata(aggregate, {const.CLASS_KEY: name})
        if host.name not in (aggregate.hosts or ()):
            compute.add_host_to_aggregate(aggregate, host.name)
