# SPDX-License-Identifier: Apache-2.0
"""Write every configuration file."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from nova_perfvm.generate.hosts import HostRequest, generate, rendering
from nova_perfvm.policy import loader
from nova_perfvm.sandbox.processes import services
from nova_perfvm.sandbox.processes.configuration import identity, nova, others
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.topology import pretended_topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nova_perfvm.generate.hosts import HostConfig
    from nova_perfvm.policy import Policy
    from nova_perfvm.sandbox.processes.environment import Environment
    from nova_perfvm.sandbox.processes.hostspec import PretendedHost
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.settings import SandboxSettings

MEMORY_GB = 500


def host_configs(
    hosts: Sequence[PretendedHost], policy: Policy
) -> dict[str, HostConfig]:
    """Return for each host what ``nova-perfvm host config`` would.

    :raises HostConfigError: when the policy or the shape forbids a host
    :raises SandboxError: when a host has to name its class, or names a wrong one
    """
    for host in hosts:
        _check_class(host, policy)
    return {
        host.name: generate(
            HostRequest(
                policy,
                pretended_topology(host.shape, MEMORY_GB),
                host.mode,
                class_name=host.class_name,
            )
        )
        for host in hosts
    }


def _check_class(host: PretendedHost, policy: Policy) -> None:
    names = [vm_class.name for vm_class in policy.pinned_classes]
    spec = f"{host.mode}:{host.shape}"
    if host.class_name is None:
        if host.mode != "shared" and len(names) > 1:
            raise SandboxError(
                f"--hosts: {spec!r}: the policy has several pinned classes, "
                f"{', '.join(names)}: say for which the host is, such as "
                f"{spec}@{names[0]}"
            )
    elif host.mode == "shared" or host.class_name not in names:
        wrong = f"--hosts: '{spec}@{host.class_name}': "
        if host.mode == "shared":
            raise SandboxError(
                f"{wrong}a shared host is for no pinned class: expected {spec}"
            )
        expected = f"one of {', '.join(names)}" if names else "none"
        raise SandboxError(
            f"{wrong}expected a pinned class of the policy, which has {expected}"
        )


class Files:
    """The configuration files of one sandbox."""

    def __init__(
        self, layout: Layout, settings: SandboxSettings, environment: Environment
    ) -> None:
        """Know what goes where; nothing is written yet."""
        self._layout = layout
        self._settings = settings
        self._environment = environment

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
        layout, settings, environment = self._layout, self._settings, self._environment
        self._make_directories()
        _write(layout.clouds, identity.clouds_yaml(settings))
        _write(layout.policy, loader.dump(policy))
        etc = {
            "keystone/keystone.conf": identity.keystone_conf(layout, settings),
            "glance/glance-api.conf": others.glance_conf(layout, settings, environment),
            "neutron/neutron.conf": others.neutron_conf(layout, settings, environment),
            "neutron/plugins/ml2/ml2_conf.ini": others.ml2_conf(),
            "nova/nova.conf": nova.nova_conf(layout, settings, environment),
            "nova/nova-cell0.conf": nova.nova_conf(
                layout, settings, environment, "nova_cell0"
            ),
            "nova/nova-compute.conf": nova.computes_conf(layout, settings),
            # Every host's configuration says the same of the schedulers.
            "nova/scheduler.conf": rendering.as_files(next(iter(configs.values())))[
                rendering.SCHEDULER_CONF
            ],
        }
        for number in range(1, schedulers + 1):
            name = f"{services.SCHEDULER}-{number}"
            etc[f"nova/{name}.conf"] = nova.scheduler_conf(layout, name)
        for name, text in etc.items():
            _write(layout.etc / name, text)
        self.write_placement(placement_retries)
        paste = environment.etc / "nova" / "api-paste.ini"
        shutil.copy(paste, layout.etc / "nova" / "api-paste.ini")
        for host, config in configs.items():
            self._write_host(host, config)

    def write_placement(self, retries: int) -> None:
        """Write placement.conf.

        :param retries: allocation_conflict_retry_count
        """
        text = others.placement_conf(self._layout, self._settings, retries)
        _write(self._layout.etc / "placement" / "placement.conf", text)

    def _write_host(self, host: str, config: HostConfig) -> None:
        directory = self._layout.host_etc(host)
        files = rendering.as_files(config)
        _write(directory / "nova.conf", files[rendering.NOVA_CONF])
        _write(directory / "sandbox.conf", nova.compute_conf(self._layout, host))
        provider = directory / "provider_config" / rendering.PROVIDER_YAML
        provider.parent.mkdir(exist_ok=True)
        provider.unlink(missing_ok=True)
        if rendering.PROVIDER_YAML in files:
            _write(provider, files[rendering.PROVIDER_YAML])
        self._layout.domains(host).mkdir(parents=True, exist_ok=True)

    def _make_directories(self) -> None:
        data = self._layout.data
        for directory in (
            self._layout.logs,
            self._layout.made,
            data / "nova" / "instances",
            data / "nova" / "lock",
            data / "neutron" / "lock",
            *(
                data / "glance" / name
                for name in ("images", "staging", "tasks", "cache")
            ),
        ):
            directory.mkdir(parents=True, exist_ok=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
