# SPDX-License-Identifier: Apache-2.0
"""Sections that several services have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nova_perfvm.sandbox.processes.settings import SandboxSettings

REGION: Final = "RegionOne"
SERVICE_USER: Final = "service"
SERVICE_PROJECT: Final = "service"

Sections = dict[str, dict[str, str]]


def render(sections: Mapping[str, Mapping[str, str]]) -> str:
    """Return an oslo.config file."""
    return "\n".join(
        f"[{section}]\n"
        + "".join(f"{key} = {value}\n" for key, value in options.items())
        for section, options in sections.items()
    )


def credentials(settings: SandboxSettings) -> dict[str, str]:
    """Return how a service authenticates at another."""
    return {
        "auth_type": "password",
        "auth_url": settings.url("keystone", "/v3"),
        "username": SERVICE_USER,
        "password": settings.password,
        "project_name": SERVICE_PROJECT,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
    }


def tokens(settings: SandboxSettings) -> dict[str, str]:
    """Return ``keystone_authtoken``, by which a service checks its callers."""
    return credentials(settings) | {
        "www_authenticate_uri": settings.url("keystone", "/v3"),
        "service_token_roles_required": "true",
        "service_token_roles": "service",
        "memcached_servers": f"{ADDRESS}:{settings.ports['memcached']}",
    }


def database(settings: SandboxSettings, name: str) -> dict[str, str]:
    """Return a section with a database."""
    return {
        "connection": settings.database_url(name),
        "max_pool_size": "5",
        "max_overflow": "20",
    }
