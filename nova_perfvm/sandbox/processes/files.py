# SPDX-License-Identifier: Apache-2.0
"""Write every configuration file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from nova_perfvm.generate.hosts import HostConfig, rendering
from nova_perfvm.policy import Policy, loader
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.ports import ADDRESS
from nova_perfvm.sandbox.processes.settings import (
    CLOUD,
    REGION,
    SERVICE_PROJECT,
    SERVICE_USER,
    SandboxSettings,
)
from nova_perfvm.sandbox.processes.starter import SCHEDULER

# Of what the services keep.
_DIRECTORIES = (
    *("nova/instances", "nova/lock", "neutron/lock"),
    *("glance/images", "glance/staging", "glance/tasks", "glance/cache"),
)
# The mechanism driver binds every port.
_ML2_CONF = """\
[ml2]
type_drivers = local
tenant_network_types = local
mechanism_drivers = perfvm_sandbox
extension_drivers = port_security
"""


def database_options(url: str) -> str:
    """Return the options of a section with a database."""
    return f"connection = {url}\nmax_pool_size = 5\nmax_overflow = 20"


@dataclass
class Files:
    """The configuration files of one sandbox."""

    layout: Layout
    settings: SandboxSettings
    environment: Environment

    def __post_init__(self) -> None:
        """Compose what several files say: how services authenticate."""
        identity = self.settings.url("keystone", "/v3")
        self._memcached = f"{ADDRESS}:{self.settings.ports['memcached']}"
        # How a service authenticates at another, and checks its callers.
        self._credentials = f"""\
auth_type = password
auth_url = {identity}
username = {SERVICE_USER}
password = {self.settings.password}
project_name = {SERVICE_PROJECT}
user_domain_name = Default
project_domain_name = Default
region_name = {REGION}"""
        self._tokens = f"""\
[keystone_authtoken]
{self._credentials}
www_authenticate_uri = {identity}
service_token_roles_required = true
service_token_roles = service
memcached_servers = {self._memcached}"""

    def write(
        self,
        policy: Policy,
        configs: Mapping[str, HostConfig],
        schedulers: int,
        placement_retries: int,
    ) -> None:
        """Write all files, over those of an earlier run.

        :param configs: by the name of the host
        :param schedulers: number of nova-schedulers
        """
        self._make_directories()
        clouds = {"clouds": {CLOUD: self.settings.cloud}}
        _write(self.layout.clouds, yaml.safe_dump(clouds, sort_keys=False))
        _write(self.layout.policy, loader.dump(policy))
        etc = {
            "keystone/keystone.conf": self._keystone(),
            "glance/glance-api.conf": self._glance(),
            "neutron/neutron.conf": self._neutron(),
            "neutron/plugins/ml2/ml2_conf.ini": _ML2_CONF,
            "nova/nova.conf": self._controller("nova_cell1"),
            "nova/nova-cell0.conf": self._controller("nova_cell0"),
            "nova/nova-compute.conf": self._computes(),
            # Every host's configuration says the same of the schedulers.
            "nova/scheduler.conf": rendering.as_files(next(iter(configs.values())))[
                rendering.SCHEDULER_CONF
            ],
        }
        for number in range(1, schedulers + 1):
            name = f"{SCHEDULER}-{number}"
            etc[f"nova/{name}.conf"] = self._scheduler(name)
        for name, text in etc.items():
            _write(self.layout.etc / name, text)
        self.write_placement(placement_retries)
        paste = self.environment.etc / "nova" / "api-paste.ini"
        shutil.copy(paste, self.layout.etc / "nova" / "api-paste.ini")
        for host, config in configs.items():
            self._write_host(host, config)

    def write_placement(self, retries: int) -> None:
        """Write placement.conf.

        :param retries: allocation_conflict_retry_count; see
            :data:`nova_perfvm.generate.options.RETRIES`
        """
        text = f"""\
[DEFAULT]
log_file = {self.layout.logs}/placement.log

[api]
auth_strategy = keystone

[placement]
allocation_conflict_retry_count = {retries}

[placement_database]
{self._database("placement")}

{self._tokens}
"""
        _write(self.layout.etc / "placement" / "placement.conf", text)

    def _write_host(self, host: str, config: HostConfig) -> None:
        directory = self.layout.host_etc(host)
        files = rendering.as_files(config)
        _write(directory / "nova.conf", files[rendering.NOVA_CONF])
        _write(directory / "sandbox.conf", self._compute(host))
        provider = directory / "provider_config" / rendering.PROVIDER_YAML
        provider.parent.mkdir(exist_ok=True)
        provider.unlink(missing_ok=True)
        if rendering.PROVIDER_YAML in files:
            _write(provider, files[rendering.PROVIDER_YAML])
        self.layout.domains(host).mkdir(parents=True, exist_ok=True)

    def _make_directories(self) -> None:
        for directory in (
            *(self.layout.logs, self.layout.made),
            *map(self.layout.data.joinpath, _DIRECTORIES),
        ):
            directory.mkdir(parents=True, exist_ok=True)

    def _database(self, name: str) -> str:
        return database_options(self.settings.database_url(name))

    def _keystone(self) -> str:
        # Every service hashes its password as it starts; strong hashes of fifty
        # computes would take keystone half a minute.  Tokens and receipts have one
        # repository of keys, as by default; which is below /etc.
        keys = self.layout.data / "keystone"
        return f"""\
[DEFAULT]
log_file = {self.layout.logs}/keystone.log

[database]
{self._database("keystone")}

[identity]
password_hash_rounds = 4

[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = {self._memcached}

[token]
provider = fernet
expiration = 86400

[fernet_tokens]
key_repository = {keys}/fernet

[fernet_receipts]
key_repository = {keys}/fernet

[credential]
key_repository = {keys}/credential
"""

    def _glance(self) -> str:
        data = self.layout.data / "glance"
        return f"""\
[DEFAULT]
log_file = {self.layout.logs}/glance.log
enabled_backends = file:file
worker_self_reference_url = {self.settings.url("glance")}
enabled_import_methods = []
image_cache_dir = {data}/cache

[glance_store]
default_backend = file

[file]
filesystem_store_datadir = {data}/images

[os_glance_staging_store]
filesystem_store_datadir = {data}/staging

[os_glance_tasks_store]
filesystem_store_datadir = {data}/tasks

[database]
{self._database("glance")}

[paste_deploy]
flavor = keystone
config_file = {self.environment.etc}/glance/glance-api-paste.ini

{self._tokens}
"""

    def _neutron(self) -> str:
        data = self.layout.data / "neutron"
        return f"""\
[DEFAULT]
log_file = {self.layout.logs}/neutron.log
core_plugin = ml2
service_plugins =
transport_url = {self.settings.transport_url("neutron")}
auth_strategy = keystone
api_paste_config = {self.environment.etc}/neutron/api-paste.ini
state_path = {data}
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true

[oslo_concurrency]
lock_path = {data}/lock

[database]
{self._database("neutron")}

[nova]
{self._credentials}

{self._tokens}
"""

    def _nova(self) -> str:
        """Return what all of Nova's processes have.

        No agent will ever say that a port is up.  Default quotas have 20 cores: one
        VM.
        """
        data = self.layout.data / "nova"
        return f"""\
[DEFAULT]
transport_url = {self.settings.transport_url("nova")}
state_path = {data}
my_ip = {ADDRESS}
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
graceful_shutdown_timeout = 20
manager_shutdown_timeout = 5
report_interval = 10
service_down_time = 60

[oslo_concurrency]
lock_path = {data}/lock

[oslo_messaging_notifications]
driver = noop

[api]
auth_strategy = keystone

{self._tokens}

[service_user]
{self._credentials}
send_service_user_token = true

[placement]
{self._credentials}

[neutron]
{self._credentials}

[glance]
{self._credentials}
endpoint_override = {self.settings.url("glance")}

[quota]
driver = nova.quota.NoopQuotaDriver
"""

    def _controller(self, cell: str) -> str:
        """Return nova.conf of the controller's processes.

        :param cell: the database of the cell
        """
        return f"""\
{self._nova()}
[api_database]
{self._database("nova_api")}

[database]
{self._database(cell)}

[wsgi]
api_paste_config = {self.environment.etc}/nova/api-paste.ini

[conductor]
workers = 1

[scheduler]
workers = 1

[perfvm]
policy_file = {self.layout.policy}
"""

    def _scheduler(self, name: str) -> str:
        """Return what one nova-scheduler has beside the generated scheduler.conf.

        That names where the policy would be on a controller.

        :param name: its own host, so that each is a service of its own
        """
        return f"""\
[DEFAULT]
host = {name}

[perfvm]
policy_file = {self.layout.policy}
"""

    def _computes(self) -> str:
        """Return nova.conf of all computes: without a database, as it should be."""
        return f"{self._nova()}\n[vnc]\nenabled = false\n\n[spice]\nenabled = false\n"

    def _compute(self, host: str) -> str:
        """Return what belongs to one compute, beside its generated nova.conf.

        Guests' files are where they move to, as on NFS.
        """
        state = self.layout.host(host)
        return f"""\
[DEFAULT]
host = {host}
state_path = {state}
instances_path = {self.layout.data}/nova/instances
compute_driver = libvirt.LibvirtDriver

[oslo_concurrency]
lock_path = {state}/lock

[compute]
provider_config_location = {self.layout.host_etc(host)}/provider_config
"""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
