# SPDX-License-Identifier: Apache-2.0
"""keystone.conf and clouds.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from nova_perfvm.sandbox.processes.configuration import common
from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.settings import SandboxSettings

CLOUD: Final = "perfvm"


def keystone_conf(layout: Layout, settings: SandboxSettings) -> str:
    """Return keystone.conf."""
    keys = layout.data / "keystone"
    return common.render(
        {
            "DEFAULT": {"log_file": str(layout.logs / "keystone.log")},
            "database": common.database(settings, "keystone"),
            # Every service hashes its password as it starts; strong hashes of
            # fifty computes would take keystone half a minute.
            "identity": {"password_hash_rounds": "4"},
            "cache": {
                "enabled": "true",
                "backend": "dogpile.cache.memcached",
                "memcache_servers": f"{ADDRESS}:{settings.ports['memcached']}",
            },
            "token": {"provider": "fernet", "expiration": "86400"},
            "fernet_tokens": {"key_repository": str(keys / "fernet")},
            # One repository for both, as by default; which is below /etc.
            "fernet_receipts": {"key_repository": str(keys / "fernet")},
            "credential": {"key_repository": str(keys / "credential")},
        }
    )


def cloud(settings: SandboxSettings) -> dict[str, Any]:
    """Return the administrator's entry in clouds.yaml."""
    return {
        "auth": {
            "auth_url": settings.url("keystone", "/v3"),
            "username": "admin",
            "password": settings.password,
            "project_name": "admin",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
        "region_name": common.REGION,
        # Servers' topology is shown from 2.78 on; 2.86 has extra specs checked.
        "compute_api_version": "2.96",
        "placement_api_version": "1.36",
    }


def clouds_yaml(settings: SandboxSettings) -> str:
    """Return clouds.yaml."""
    text: str = yaml.safe_dump({"clouds": {CLOUD: cloud(settings)}}, sort_keys=False)
    return text
