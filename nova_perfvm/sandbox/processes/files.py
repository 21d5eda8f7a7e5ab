# SPDX-License-Identifier: Apache-2.0
"""Write the configuration files of all services."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from nova_perfvm.generate.hosts import HostConfig, rendering
from nova_perfvm.microversions import COMPUTE, PLACEMENT
from nova_perfvm.policy import Policy, loader
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.ports import ADDRESS
from nova_perfvm.sandbox.processes.servers import DATABASES, VHOSTS
from nova_perfvm.sandbox.processes.settings import (
    CLOUD,
    SERVICE_PROJECT,
    SERVICE_USER,
    SandboxSettings,
)
from nova_perfvm.sandbox.processes.starter import SCHEDULER

# A service's credentials for requests to other services.
_CREDENTIALS: Final = """\
auth_type = password
auth_url = {identity}
username = {user}
password = {password}
project_name = {project}
user_domain_name = Default
project_domain_name = Default"""

# A service's check of its callers' tokens.
_TOKENS: Final = """\
[keystone_authtoken]
{credentials}
www_authenticate_uri = {identity}
memcached_servers = {memcached}"""

# keystone hashes a service's password at each start of the service; strong hashes for
# fifty computes would take half a minute.  Tokens and receipts share a key repository,
# as by default, but not below /etc.
_KEYSTONE: Final = """\
[DEFAULT]
log_file = {logs}/keystone.log

[database]
{keystone_database}

[identity]
password_hash_rounds = 4

[cache]
backend = dogpile.cache.memcached
memcache_servers = {memcached}

[fernet_tokens]
key_repository = {data}/keystone/fernet

[fernet_receipts]
key_repository = {data}/keystone/fernet

[credential]
key_repository = {data}/keystone/credential
"""

_PLACEMENT: Final = """\
[DEFAULT]
log_file = {logs}/placement.log

[placement]
allocation_conflict_retry_count = 1

[placement_database]
{placement_database}

{tokens}
"""

_GLANCE: Final = """\
[DEFAULT]
log_file = {logs}/glance.log
enabled_backends = file:file
enabled_import_methods = []
image_cache_dir = {data}/glance/cache

[glance_store]
default_backend = file

[file]
filesystem_store_datadir = {data}/glance/images

[os_glance_staging_store]
filesystem_store_datadir = {data}/glance/staging

[os_glance_tasks_store]
filesystem_store_datadir = {data}/glance/tasks

[database]
{glance_database}

[paste_deploy]
flavor = keystone
config_file = {installed}/glance/glance-api-paste.ini

{tokens}
"""

_NEUTRON: Final = """\
[DEFAULT]
log_file = {logs}/neutron.log
core_plugin = ml2
service_plugins =
transport_url = {neutron_messages}
api_paste_config = {installed}/neutron/api-paste.ini
state_path = {data}/neutron

[oslo_concurrency]
lock_path = {data}/neutron/lock

[database]
{neutron_database}

[nova]
{credentials}

{tokens}
"""

# The mechanism driver perfvm_sandbox (binding.py) binds every port.
_ML2: Final = """\
[ml2]
type_drivers = local
tenant_network_types = local
mechanism_drivers = perfvm_sandbox
extension_drivers = port_security
"""

_CINDER: Final = """\
[DEFAULT]
log_file = {logs}/cinder.log
host = sandbox
transport_url = {cinder_messages}
api_paste_config = {installed}/cinder/api-paste.ini
resource_query_filters_file = {installed}/cinder/resource_filters.json
state_path = {data}/cinder
my_ip = {address}
glance_api_servers = {glance}
enabled_backends = pretended
quota_volumes = -1
quota_snapshots = -1
quota_gigabytes = -1

[pretended]
volume_driver = nova_perfvm.sandbox.processes.volumes.PretendedDriver
volume_backend_name = pretended

[oslo_concurrency]
lock_path = {data}/cinder/lock

[database]
{cinder_database}

[nova]
{credentials}

{tokens}
"""

# Options of all Nova processes.  vif_plugging_*: no agent ever reports a plugged port.
# NoopQuotaDriver: the default quota of 20 cores is one VM.  {report_s}: a moved server
# counts on its old host until the compute there reports, every 10 s instead of 60 and
# 120 s if there are few hosts.
_NOVA: Final = """\
[DEFAULT]
transport_url = {nova_messages}
state_path = {data}/nova
my_ip = {address}
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
graceful_shutdown_timeout = 20
manager_shutdown_timeout = 5
report_interval = 10
service_down_time = 60
periodic_fuzzy_delay = {report_s}
scheduler_instance_sync_interval = {report_s}
update_resources_interval = {report_s}

[oslo_concurrency]
lock_path = {data}/nova/lock

{tokens}

[service_user]
{credentials}
send_service_user_token = true

[placement]
{credentials}

[neutron]
{credentials}

[cinder]
{credentials}

[glance]
{credentials}
endpoint_override = {glance}

[quota]
driver = nova.quota.NoopQuotaDriver

[vnc]
enabled = false
"""

# Options of the controller's processes; %s is the cell whose database they use.
_CONTROLLER: Final = """\

[api_database]
{nova_api_database}

[database]
{%s_database}

[conductor]
workers = 1

[scheduler]
workers = 1

[perfvm]
policy_file = {policy}
"""

# Each nova-scheduler has its own host name, so that Nova sees several services.
_SCHEDULER: Final = """\
[DEFAULT]
host = {name}
"""

# Options of one compute, beside its generated nova.conf.  All computes share
# instances_path, as on NFS, so that migrations need not copy guests' files.
_COMPUTE: Final = """\
[DEFAULT]
host = {name}
state_path = {data}/hosts/{name}
instances_path = {data}/nova/instances
compute_driver = libvirt.LibvirtDriver

[oslo_concurrency]
lock_path = {data}/hosts/{name}/lock

[compute]
provider_config_location = {etc}/hosts/{name}/provider_config
"""

_FILES: Final = {
    "keystone/keystone.conf": _KEYSTONE,
    "placement/placement.conf": _PLACEMENT,
    "glance/glance-api.conf": _GLANCE,
    "neutron/neutron.conf": _NEUTRON,
    "neutron/plugins/ml2/ml2_conf.ini": _ML2,
    "cinder/cinder.conf": _CINDER,
    "nova/nova.conf": _NOVA + _CONTROLLER % "nova_cell1",
    "nova/nova-cell0.conf": _NOVA + _CONTROLLER % "nova_cell0",
    # Computes have no database.
    "nova/nova-compute.conf": _NOVA,
}


def write(
    layout: Layout,
    settings: SandboxSettings,
    environment: Environment,
    policy: Policy,
    configs: Mapping[str, HostConfig],
    schedulers: int,
) -> None:
    """Write all files, replacing the files of an earlier run.

    :param configs: host configurations by the host's name
    :param schedulers: number of nova-schedulers
    """
    for directory in (layout.logs, layout.made, layout.data / "nova" / "instances"):
        directory.mkdir(parents=True, exist_ok=True)
    versions = {"compute_api_version": COMPUTE, "placement_api_version": PLACEMENT}
    clouds = {"clouds": {CLOUD: settings.cloud | versions}}
    _write(layout.clouds, yaml.safe_dump(clouds, sort_keys=False))
    _write(layout.policy, loader.dump(policy))
    values = _values(layout, settings, environment)
    values["report_s"] = max(10, len(configs))
    for name in filter(settings.has, _FILES):
        _write(layout.etc / name, _FILES[name].format_map(values))
    nova = layout.etc / "nova"
    shutil.copy(environment.etc / "nova" / "api-paste.ini", nova / "api-paste.ini")
    # scheduler.conf is the same in every host's configuration.
    generated = rendering.as_files(next(iter(configs.values())))
    # preflight and policy check read [perfvm]policy_file from this file.
    enforced = f"\n[perfvm]\npolicy_file = {layout.policy}\n"
    _write(nova / "scheduler.conf", generated[rendering.SCHEDULER_CONF] + enforced)
    for number in range(1, schedulers + 1):
        name = f"{SCHEDULER}-{number}"
        _write(nova / f"{name}.conf", _SCHEDULER.format_map(values | {"name": name}))
    write_hosts(layout, configs)


def write_hosts(layout: Layout, configs: Mapping[str, HostConfig]) -> None:
    """Write the files of computes, and create their directories.

    :param configs: host configurations by the host's name
    """
    for host, config in configs.items():
        values = {"name": host, "data": layout.data, "etc": layout.etc}
        own = layout.host_etc(host)
        files = rendering.as_files(config)
        _write(own / "nova.conf", files[rendering.NOVA_CONF])
        _write(own / "sandbox.conf", _COMPUTE.format_map(values))
        provider = own / "provider_config" / rendering.PROVIDER_YAML
        provider.parent.mkdir(parents=True, exist_ok=True)
        provider.unlink(missing_ok=True)
        if rendering.PROVIDER_YAML in files:
            _write(provider, files[rendering.PROVIDER_YAML])
        layout.domains(host).mkdir(parents=True, exist_ok=True)


def _values(
    layout: Layout, settings: SandboxSettings, environment: Environment
) -> dict[str, object]:
    values: dict[str, object] = {
        "address": ADDRESS,
        "data": layout.data,
        "etc": layout.etc,
        "glance": settings.url("glance"),
        "identity": settings.url("keystone", "/v3"),
        "installed": environment.etc,
        "logs": layout.logs,
        "memcached": f"{ADDRESS}:{settings.ports['memcached']}",
        "password": settings.password,
        "policy": layout.policy,
        "project": SERVICE_PROJECT,
        "user": SERVICE_USER,
    }
    for name in DATABASES:
        values[f"{name}_database"] = database_options(settings.database_url(name))
    for name in VHOSTS:
        values[f"{name}_messages"] = settings.transport_url(name)
    values["credentials"] = _CREDENTIALS.format_map(values)
    values["tokens"] = _TOKENS.format_map(values)
    return values


def database_options(url: str) -> str:
    return f"connection = {url}\nmax_pool_size = 5\nmax_overflow = 20"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
