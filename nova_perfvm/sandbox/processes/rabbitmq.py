# SPDX-License-Identifier: Apache-2.0
"""A private RabbitMQ, with an Erlang port mapper of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes import running, waiting
from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.process import Processes
    from nova_perfvm.sandbox.processes.programs import Programs
    from nova_perfvm.sandbox.processes.settings import SandboxSettings

VHOSTS: Final = ("nova", "neutron")

_CONF: Final = """\
loopback_users = none
vm_memory_high_watermark.relative = 0.2
disk_free_limit.absolute = 50MB
"""


def start(
    processes: Processes, programs: Programs, layout: Layout, settings: SandboxSettings
) -> None:
    """Start RabbitMQ with its user and vhosts.

    :raises SandboxError: when it does not start
    """
    data = layout.data / "rabbitmq"
    data.mkdir(parents=True, exist_ok=True)
    (data / "rabbitmq.conf").write_text(_CONF, encoding="utf-8")
    (data / "plugins").write_text("[].\n", encoding="utf-8")
    env = _environment(layout, settings)
    _start_port_mapper(processes, programs, settings, env)
    record = processes.start(
        "rabbitmq",
        [programs.rabbitmq_server],
        env=env,
        cwd=data,
        port=settings.ports["rabbitmq"],
    )
    waiting.until_listening(processes, record)
    # One start of the command line tool, a second each, instead of five.
    running.run(
        [programs.rabbitmqctl, "eval", _users(settings.password)],
        env=processes.environment(env),
        log=processes.output("rabbitmq"),
        password=settings.password,
    )


def _start_port_mapper(
    processes: Processes,
    programs: Programs,
    settings: SandboxSettings,
    env: dict[str, str],
) -> None:
    # RabbitMQ would start one that outlives it.
    found = processes.find("epmd")
    if found is not None and found.alive:
        return
    port = settings.ports["epmd"]
    command = [programs.epmd, "-port", str(port), "-address", ADDRESS]
    record = processes.start("epmd", command, env=env, port=port)
    waiting.until_listening(processes, record)


def _environment(layout: Layout, settings: SandboxSettings) -> dict[str, str]:
    data = layout.data / "rabbitmq"
    ports = settings.ports
    return {
        "HOME": str(data),
        "ERL_EPMD_PORT": str(ports["epmd"]),
        "ERL_EPMD_ADDRESS": ADDRESS,
        "RABBITMQ_NODENAME": f"perfvm{ports['rabbitmq']}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": ADDRESS,
        "RABBITMQ_NODE_PORT": str(ports["rabbitmq"]),
        "RABBITMQ_DIST_PORT": str(ports["rabbitmq-dist"]),
        "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
        "RABBITMQ_LOG_BASE": str(layout.logs),
        "RABBITMQ_CONFIG_FILE": str(data / "rabbitmq"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
        # The machine's own settings are not for this instance.
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        # Erlang's schedulers spin while they wait, unless told not to.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "+sbwt none +sbwtdcpu none +sbwtdio none "
            "-kernel inet_dist_use_interface {127,0,0,1}"
        ),
    }


def _users(password: str) -> str:
    """Return Erlang that makes the user and the vhosts, as often as it is run."""
    vhosts = " ".join(
        f'rabbit_vhost:exists(<<"{name}">>) orelse '
        f'rabbit_vhost:add(<<"{name}">>, <<"openstack">>),'
        for name in VHOSTS
    )
    user = (
        'case rabbit_auth_backend_internal:lookup_user(<<"openstack">>) of '
        "{ok, _} -> ok; _ -> rabbit_auth_backend_internal:add_user("
        f'<<"openstack">>, <<"{password}">>, <<"openstack">>) end,'
    )
    rights = " ".join(
        'rabbit_auth_backend_internal:set_permissions(<<"openstack">>, '
        f'<<"{name}">>, <<".*">>, <<".*">>, <<".*">>, <<"openstack">>),'
        for name in VHOSTS
    )
    return f"{vhosts} {user} {rights} ok."
