# SPDX-License-Identifier: Apache-2.0
"""A host configuration in the files that tools for deployment read.

Where each tool takes overrides:

* Kolla-Ansible merges ``nova/HOST/nova.conf``, ``nova/nova-scheduler.conf`` and
  ``placement.conf`` of its ``node_custom_config`` into its own files, and writes
  ``nova_cell_compute_provider_config`` as provider.yaml (roles nova-cell, nova and
  placement, ``tasks/config.yml``).
* OpenStack-Ansible takes ``nova_nova_conf_overrides``, ``nova_provider_overrides`` and
  ``placement_placement_conf_overrides`` (roles os_nova and os_placement,
  ``tasks/*_post_install.yml``).  Its config_template writes an option once for each
  key of a mapping without values.
* oslo.config reads directories ``nova.conf.d`` and ``placement.conf.d`` by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import yaml

from nova_perfvm.generate.hosts import rendering
from nova_perfvm.generate.hosts.generate import HostConfig
from nova_perfvm.generate.options import Setting

# To be replaced by the host's name in the tool's inventory.
HOST: Final = "HOST"
_WIDTH: Final = 88
_KOLLA: Final = "/etc/kolla/config"
_OSA: Final = "/etc/openstack_deploy"


def kolla_files(config: HostConfig) -> dict[str, str]:
    """Return the files of Kolla-Ansible by path; host_vars beside its inventory."""
    own = rendering.as_files(config)
    files = {
        f"{_KOLLA}/nova/{HOST}/nova.conf": own[rendering.NOVA_CONF],
        f"{_KOLLA}/nova/nova-scheduler.conf": own[rendering.SCHEDULER_CONF],
        f"{_KOLLA}/placement.conf": own[rendering.PLACEMENT_CONF],
    }
    if config.provider is not None:
        variables = {"nova_cell_compute_provider_config": config.provider}
        files[f"host_vars/{HOST}.yml"] = _yaml(variables)
    return files


def osa_files(config: HostConfig) -> dict[str, str]:
    """Return the files of OpenStack-Ansible by path."""
    host: dict[str, Any] = {"nova_nova_conf_overrides": _overrides(config.nova)}
    if config.provider is not None:
        host["nova_provider_overrides"] = [
            {"name": "perfvm", "content": config.provider}
        ]
    scheduler = {"nova_nova_conf_overrides": _overrides(config.scheduler)}
    placement = {"placement_placement_conf_overrides": _overrides(config.placement)}
    return {
        f"{_OSA}/host_vars/{HOST}.yml": _yaml(host),
        f"{_OSA}/group_vars/nova_scheduler.yml": _yaml(scheduler),
        f"{_OSA}/group_vars/placement_all.yml": _yaml(placement),
    }


def plain_files(config: HostConfig) -> dict[str, str]:
    """Return the files of services that read their own directories, by path."""
    paths = {
        rendering.NOVA_CONF: "/etc/nova/nova.conf.d/50-perfvm-compute.conf",
        rendering.PROVIDER_YAML: "/etc/nova/provider_config/perfvm.yaml",
        rendering.SCHEDULER_CONF: "/etc/nova/nova.conf.d/50-perfvm-scheduler.conf",
        rendering.PLACEMENT_CONF: "/etc/placement/placement.conf.d/50-perfvm.conf",
    }
    own = rendering.as_files(config)
    return {paths[name]: text for name, text in own.items()}


FILES: Final[Mapping[str, Callable[[HostConfig], dict[str, str]]]] = {
    "kolla": kolla_files,
    "osa": osa_files,
    "plain": plain_files,
}


def as_text(tool: str, config: HostConfig) -> str:
    """Return all files of a tool, each below a line with its path.

    :param tool: a key of :data:`FILES`
    """
    files = FILES[tool](config)
    return "\n".join(f"# ==> {path}\n{text}" for path, text in files.items())


def _overrides(settings: Iterable[Setting]) -> dict[str, dict[str, Any]]:
    """Return options by section, as config_template has them."""
    found: dict[str, dict[str, Any]] = {}
    for setting in settings:
        if setting.values:
            several = dict.fromkeys(setting.values)
            value = several if len(several) > 1 else setting.values[0]
            found.setdefault(setting.section, {})[setting.option] = value
    return found


def _yaml(document: Any) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, width=_WIDTH)
    return text
