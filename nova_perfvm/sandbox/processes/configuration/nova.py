# SPDX-License-Identifier: Apache-2.0
"""nova.conf, in parts: what all processes share, and what each adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm.sandbox.processes.configuration import common

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.environment import Environment
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.settings import SandboxSettings


def _everywhere(layout: Layout, settings: SandboxSettings) -> common.Sections:
    data = layout.data / "nova"
    return {
        "DEFAULT": {
            "transport_url": settings.transport_url("nova"),
            "state_path": str(data),
            "my_ip": "127.0.0.1",
            # No agent will ever say that a port is up.
            "vif_plugging_is_fatal": "false",
            "vif_plugging_timeout": "0",
            "graceful_shutdown_timeout": "20",
            "manager_shutdown_timeout": "5",
            "report_interval": "10",
            "service_down_time": "60",
        },
        "oslo_concurrency": {"lock_path": str(data / "lock")},
        "oslo_messaging_notifications": {"driver": "noop"},
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": common.tokens(settings),
        "service_user": common.credentials(settings)
        | {"send_service_user_token": "true"},
        "placement": common.credentials(settings),
        "neutron": common.credentials(settings),
        "glance": common.credentials(settings)
        | {"endpoint_override": settings.url("glance")},
        # Default quotas have 20 cores: one VM.
        "quota": {"driver": "nova.quota.NoopQuotaDriver"},
    }


def nova_conf(
    layout: Layout,
    settings: SandboxSettings,
    environment: Environment,
    cell: str = "nova_cell1",
) -> str:
    """Return nova.conf of the controller's processes.

    :param cell: the database of the cell
    """
    return common.render(
        _everywhere(layout, settings)
        | {
            "api_database": common.database(settings, "nova_api"),
            "database": common.database(settings, cell),
            "wsgi": {
                "api_paste_config": str(environment.etc / "nova" / "api-paste.ini")
            },
            "conductor": {"workers": "1"},
            "scheduler": {"workers": "1"},
            "perfvm": {"policy_file": str(layout.policy)},
        }
    )


def scheduler_conf(layout: Layout, name: str) -> str:
    """Return what one nova-scheduler has beside the generated scheduler.conf.

    :param name: its own host, so that each is a service of its own
    """
    return common.render(
        {
            "DEFAULT": {"host": name},
            # The generated file names where it would be on a controller.
            "perfvm": {"policy_file": str(layout.policy)},
        }
    )


def computes_conf(layout: Layout, settings: SandboxSettings) -> str:
    """Return nova.conf of all computes: without a database, as it should be."""
    return common.render(
        _everywhere(layout, settings)
        | {"vnc": {"enabled": "false"}, "spice": {"enabled": "false"}}
    )


def compute_conf(layout: Layout, host: str) -> str:
    """Return what belongs to one compute, beside its generated nova.conf."""
    state = layout.host(host)
    return common.render(
        {
            "DEFAULT": {
                "host": host,
                "state_path": str(state),
                # As on NFS: guests' files are where they move to.
                "instances_path": str(layout.data / "nova" / "instances"),
                "compute_driver": "libvirt.LibvirtDriver",
            },
            "oslo_concurrency": {"lock_path": str(state / "lock")},
            "compute": {
                "provider_config_location": str(
                    layout.host_etc(host) / "provider_config"
                )
            },
        }
    )
