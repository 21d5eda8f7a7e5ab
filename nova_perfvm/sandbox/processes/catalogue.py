# SPDX-License-Identifier: Apache-2.0
"""The users and endpoints that keystone has beside the administrator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nova_perfvm.sandbox.processes.configuration import common

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.settings import SandboxSettings


def make(connection: Any, settings: SandboxSettings) -> None:
    """Make what is missing."""
    identity = connection.identity
    _service_user(identity, settings.password)
    known = {service.type for service in identity.services()}
    for kind, name, url in (
        ("placement", "placement", settings.url("placement")),
        ("image", "glance", settings.url("glance")),
        ("compute", "nova", settings.url("nova-api", "/v2.1")),
        ("network", "neutron", settings.url("neutron")),
    ):
        if kind in known:
            continue
        service = identity.create_service(name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(
                service_id=service.id,
                interface=interface,
                region_id=common.REGION,
                url=url,
            )


def _service_user(identity: Any, password: str) -> None:
    name = common.SERVICE_PROJECT
    project = identity.find_project(name) or identity.create_project(
        name=name, domain_id="default"
    )
    name = common.SERVICE_USER
    user = identity.find_user(name) or identity.create_user(
        name=name, password=password, domain_id="default"
    )
    for role_name in ("admin", "service"):
        role = identity.find_role(role_name) or identity.create_role(name=role_name)
        identity.assign_project_role_to_user(project, user, role)
