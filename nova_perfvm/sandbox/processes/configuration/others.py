# SPDX-License-Identifier: Apache-2.0
"""placement.conf, glance-api.conf and neutron's two files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm.sandbox.processes.configuration import common

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.environment import Environment
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.settings import SandboxSettings


def placement_conf(layout: Layout, settings: SandboxSettings, retries: int) -> str:
    """Return placement.conf.

    :param retries: allocation_conflict_retry_count; see
        :data:`nova_perfvm.generate.options.RETRIES`
    """
    return common.render(
        {
            "DEFAULT": {"log_file": str(layout.logs / "placement.log")},
            "api": {"auth_strategy": "keystone"},
            "placement": {"allocation_conflict_retry_count": str(retries)},
            "placement_database": common.database(settings, "placement"),
            "keystone_authtoken": common.tokens(settings),
        }
    )


def glance_conf(
    layout: Layout, settings: SandboxSettings, environment: Environment
) -> str:
    """Return glance-api.conf."""
    data = layout.data / "glance"
    return common.render(
        {
            "DEFAULT": {
                "log_file": str(layout.logs / "glance.log"),
                "enabled_backends": "file:file",
                "worker_self_reference_url": settings.url("glance"),
                "enabled_import_methods": "[]",
                "image_cache_dir": str(data / "cache"),
            },
            "glance_store": {"default_backend": "file"},
            "file": {"filesystem_store_datadir": str(data / "images")},
            "os_glance_staging_store": {
                "filesystem_store_datadir": str(data / "staging")
            },
            "os_glance_tasks_store": {"filesystem_store_datadir": str(data / "tasks")},
            "database": common.database(settings, "glance"),
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": str(environment.etc / "glance" / "glance-api-paste.ini"),
            },
            "keystone_authtoken": common.tokens(settings),
        }
    )


def neutron_conf(
    layout: Layout, settings: SandboxSettings, environment: Environment
) -> str:
    """Return neutron.conf."""
    data = layout.data / "neutron"
    return common.render(
        {
            "DEFAULT": {
                "log_file": str(layout.logs / "neutron.log"),
                "core_plugin": "ml2",
                "service_plugins": "",
                "transport_url": settings.transport_url("neutron"),
                "auth_strategy": "keystone",
                "api_paste_config": str(environment.etc / "neutron" / "api-paste.ini"),
                "state_path": str(data),
                "notify_nova_on_port_status_changes": "true",
                "notify_nova_on_port_data_changes": "true",
            },
            "oslo_concurrency": {"lock_path": str(data / "lock")},
            "database": common.database(settings, "neutron"),
            "nova": common.credentials(settings),
            "keystone_authtoken": common.tokens(settings),
        }
    )


def ml2_conf() -> str:
    """Return ml2_conf.ini, with the mechanism driver that binds every port."""
    return common.render(
        {
            "ml2": {
                "type_drivers": "local",
                "tenant_network_types": "local",
                "mechanism_drivers": "perfvm_sandbox",
                "extension_drivers": "port_security",
            }
        }
    )
