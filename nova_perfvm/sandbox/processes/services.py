# SPDX-License-Identifier: Apache-2.0
"""How each OpenStack process but nova-compute is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.environment import Environment
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.settings import SandboxSettings

# Requests are claimed concurrently only where several processes serve them.
_APIS: Final = {
    "keystone": ("keystone.wsgi.api", 1),
    "placement": ("placement.wsgi.api", 2),
    "glance": ("glance.wsgi.api", 1),
    "neutron": ("neutron.wsgi.api", 1),
    "nova-api": ("nova.wsgi.osapi_compute", 2),
}
_THREADS: Final = 8

SCHEDULER: Final = "nova-scheduler"
CONDUCTOR: Final = "nova-conductor"


@dataclass(frozen=True, slots=True)
class SandboxService:
    """One process to start.

    :ivar env: what it has in its environment beside what all have
    :ivar port: where it listens, if it does
    """

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    port: int | None = None


def api(
    name: str, layout: Layout, settings: SandboxSettings, environment: Environment
) -> SandboxService:
    """Return the process of an API: uwsgi with its application."""
    module, processes = _APIS[name]
    port = settings.ports[name]
    command = [
        environment.program("uwsgi"),
        *("--http-socket", f"{ADDRESS}:{port}"),
        *("--module", f"{module}:application"),
        *("--virtualenv", str(environment.directory)),
        *("--procname-prefix", f"{name} "),
        *("--processes", str(processes)),
        *("--threads", str(_THREADS)),
        *("--buffer-size", "65535"),
        *("--add-header", "Connection: close"),
        *("--hook-master-start", "unix_signal:15 gracefully_kill_them_all"),
        *("--worker-reload-mercy", "5"),
        *("--master", "--enable-threads", "--thunder-lock", "--die-on-term"),
        # Connections to the database must not be shared by the workers.
        *("--lazy-apps", "--need-app", "--disable-logging"),
    ]
    return SandboxService(name, command, _api_env(layout), port)


def _api_env(layout: Layout) -> dict[str, str]:
    directories = {
        f"OS_{name.upper()}_CONFIG_DIR": str(layout.etc / name)
        for name in ("keystone", "placement", "glance", "neutron", "nova")
    }
    # Nova reads the paste pipeline from the first of these, whatever [wsgi] says.
    return directories | {"OS_NOVA_CONFIG_FILES": "api-paste.ini;nova.conf"}


def conductor(layout: Layout, environment: Environment) -> SandboxService:
    """Return nova-conductor, the one of the cloud and of its cell."""
    return _nova(CONDUCTOR, CONDUCTOR, layout, environment, ["nova.conf"])


def scheduler(number: int, layout: Layout, environment: Environment) -> SandboxService:
    """Return one of the nova-schedulers.

    :param number: from 1
    """
    name = f"{SCHEDULER}-{number}"
    files = ["nova.conf", "scheduler.conf", f"{name}.conf"]
    return _nova(name, SCHEDULER, layout, environment, files)


def _nova(
    name: str, program: str, layout: Layout, environment: Environment, files: list[str]
) -> SandboxService:
    command = [environment.program(program)]
    for file in files:
        command += ["--config-file", str(layout.etc / "nova" / file)]
    command += ["--log-file", str(layout.logs / f"{name}.log")]
    return SandboxService(name, command)
