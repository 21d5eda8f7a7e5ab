# SPDX-License-Identifier: Apache-2.0
"""The settings of a sandbox, saved because its databases depend on them."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nova_perfvm.documents import textfile
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.hostspec import PretendedHost, parse_hosts
from nova_perfvm.sandbox.processes.ports import ADDRESS, choose_ports

CLOUD: Final = "perfvm"
REGION: Final = "RegionOne"
SERVICE_USER: Final = "service"
SERVICE_PROJECT: Final = "service"


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Settings that do not change while the sandbox has data.

    :ivar hosts: see :func:`nova_perfvm.sandbox.processes.hostspec.parse_hosts`
    :ivar policy_digest: SHA-256 of the policy's meaning
    :ivar ports: ports by the name of the service
    :ivar password: password of every user in every service
    :ivar volumes: whether the sandbox has Cinder
    """

    hosts: str
    policy_digest: str
    ports: dict[str, int]
    password: str
    volumes: bool = False

    @property
    def pretended(self) -> tuple[PretendedHost, ...]:
        return parse_hosts(self.hosts)

    def has(self, name: str) -> bool:
        return self.volumes or not name.startswith("cinder")

    def url(self, service: str, path: str = "") -> str:
        return f"http://{ADDRESS}:{self.ports[service]}{path}"

    def database_url(self, name: str) -> str:
        return (
            f"mysql+pymysql://openstack:{self.password}@{ADDRESS}:"
            f"{self.ports['mariadb']}/{name}?charset=utf8mb4"
        )

    @property
    def cloud(self) -> dict[str, Any]:
        """The administrator's entry in clouds.yaml."""
        return {
            "auth": {
                "auth_url": self.url("keystone", "/v3"),
                "username": "admin",
                "password": self.password,
                "project_name": "admin",
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
            "region_name": REGION,
        }

    def transport_url(self, vhost: str) -> str:
        return (
            f"rabbit://openstack:{self.password}@{ADDRESS}:"
            f"{self.ports['rabbitmq']}/{vhost}"
        )


def new_settings(
    hosts: str, policy_digest: str, *, volumes: bool = False
) -> SandboxSettings:
    password = secrets.token_hex(12)
    return SandboxSettings(hosts, policy_digest, choose_ports(), password, volumes)


def load(path: Path) -> SandboxSettings | None:
    """Read the settings; None where the file does not exist yet.

    :raises SandboxError: when this version cannot read the file
    """
    try:
        return SandboxSettings(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as exc:
        raise SandboxError(
            f"{path} cannot be used ({exc}): end the sandbox with nova-perfvm sandbox "
            "wipe"
        ) from exc


def save(settings: SandboxSettings, path: Path) -> None:
    """Write the settings readable only by their owner, as they contain a password."""
    text = json.dumps(asdict(settings), indent=1) + "\n"
    textfile.replace(str(path), text, private=True)
