# SPDX-License-Identifier: Apache-2.0
"""A host configuration as the files of deployment tools.

Each tool's place for overrides:

* Kolla-Ansible merges ``nova/HOST/nova.conf``, ``nova/nova-scheduler.conf`` and
  ``placement.conf`` of its ``node_custom_config`` into its own files, and writes
  ``nova_cell_compute_provider_config`` as provider.yaml (roles nova-cell, nova and
  placement, ``tasks/config.yml``).
* OpenStack-Ansible takes ``nova_nova_conf_overrides``, ``nova_provider_overrides`` and
  ``placement_placement_conf_overrides`` (roles os_nova and os_placement,
  ``tasks/*_post_install.yml``).  Its config_template writes an option once for each
  key of a mapping without values.
* oslo.config itself reads the directories ``nova.conf.d`` and ``placement.conf.d``.
* OpenStack-Helm's charts have values: ``conf.nova`` for all services, and
  ``conf.overrides`` for single hosts (helm-toolkit, ``daemonset_overrides``).  An
  option with several lines is a ``multistring``.  ``pod.mounts`` mounts files.
* RHOSO's operators append ``customServiceConfig`` to their own configuration
  (nova-operator, placement-operator).  Hosts read the files ``*nova*.conf`` of the
  ConfigMap ``nova-extra-config`` in order, and ``provider*.yaml`` (edpm-ansible, role
  edpm_nova).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate import options
from nova_perfvm.generate.hosts import rendering
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.placement.settings import Setting

PROVIDER_DIRECTORY: Final = "/etc/nova/provider_config"

# Returns the content of a host's file; an empty value where the host needs no file.
_Content = Callable[[HostConfig], Any]


def _kolla_variables(config: HostConfig) -> dict[str, Any]:
    """Return the variables of Kolla-Ansible's host_vars of a host."""
    if config.provider is None:
        return {}
    return {"nova_cell_compute_provider_config": config.provider}


def _overrides(name: str, settings: Iterable[Setting]) -> dict[str, Any]:
    """Return a variable of OpenStack-Ansible in the format of config_template."""
    return {name: options.by_section(settings, dict.fromkeys)}


def _osa_variables(config: HostConfig) -> dict[str, Any]:
    host = _overrides("nova_nova_conf_overrides", config.nova)
    if config.provider is not None:
        host["nova_provider_overrides"] = [
            {"name": "perfvm", "content": config.provider}
        ]
    return host


def _values(settings: Iterable[Setting]) -> dict[str, dict[str, Any]]:
    """Return options by section in the format of helm-toolkit's ``to_oslo_conf``."""
    return options.by_section(
        settings, lambda values: {"type": "multistring", "values": list(values)}
    )


def _helm_nova(config: HostConfig) -> dict[str, Any]:
    """Return values of the chart nova; ``HOST`` stands for the host's name."""
    mounts = {}
    if options.POLICY in config.scheduler:
        name = options.POLICY_FILE.rpartition("/")[2]
        mount = {"mountPath": options.POLICY_FILE, "subPath": name}
        source = {"configMap": {"name": "nova-perfvm-policy"}}
        for reader in ("nova_scheduler", "nova_api_osapi"):
            mounts[reader] = _mount(reader, "perfvm-policy", mount, source)
    if config.provider is not None:
        mounts["nova_compute"] = _mount(
            "nova_compute",
            "perfvm-provider",
            {"mountPath": PROVIDER_DIRECTORY},
            {"hostPath": {"path": PROVIDER_DIRECTORY}},
        )
    host = {"name": "HOST", "conf": {"nova": _values(config.nova)}}
    return {
        "conf": {
            "nova": _values(config.scheduler),
            "overrides": {"nova_compute": {"hosts": [host]}},
        },
        "pod": {"mounts": mounts},
    }


def _mount(
    pod: str, name: str, mount: dict[str, str], source: dict[str, Any]
) -> dict[str, Any]:
    return {
        pod: {
            "volumeMounts": [{"name": name, **mount, "readOnly": True}],
            "volumes": [{"name": name, **source}],
        }
    }


def _rhoso_plane(config: HostConfig) -> dict[str, Any]:
    """Return the services' part of an OpenStackControlPlane."""
    nova = {"schedulerServiceTemplate": _custom(config.scheduler)}
    if options.POLICY in config.scheduler:
        nova["apiServiceTemplate"] = _custom([options.POLICY])
    placement = _custom(config.placement)
    return {"spec": {"nova": {"template": nova}, "placement": {"template": placement}}}


def _custom(settings: Iterable[Setting]) -> dict[str, str]:
    return {"customServiceConfig": options.as_ini(settings)}


def _rhoso_hosts(config: HostConfig) -> dict[str, Any]:
    """Return the ConfigMap nova-extra-config with the files for compute hosts."""
    data = {"50-nova-perfvm.conf": options.as_ini(config.nova)}
    if config.provider is not None:
        data["provider-perfvm.yaml"] = dump_yaml(config.provider)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nova-extra-config", "namespace": "openstack"},
        "data": data,
    }


_KOLLA: Final = "/etc/kolla/config"
_OSA: Final = "/etc/openstack_deploy"
_PROVIDER: Final = f"{PROVIDER_DIRECTORY}/perfvm.yaml"
# By tool, and by path of its files, the function that returns a file's content.
TOOLS: Final[Mapping[str, Mapping[str, _Content]]] = {
    "kolla": {
        f"{_KOLLA}/nova/HOST/nova.conf": rendering.nova_conf,
        f"{_KOLLA}/nova/nova-scheduler.conf": rendering.scheduler_conf,
        f"{_KOLLA}/placement.conf": rendering.placement_conf,
        "host_vars/HOST.yml": _kolla_variables,
    },
    "osa": {
        f"{_OSA}/host_vars/HOST.yml": _osa_variables,
        f"{_OSA}/group_vars/nova_scheduler.yml": lambda config: _overrides(
            "nova_nova_conf_overrides", config.scheduler
        ),
        f"{_OSA}/group_vars/placement_all.yml": lambda config: _overrides(
            "placement_placement_conf_overrides", config.placement
        ),
    },
    "plain": {
        "/etc/nova/nova.conf.d/50-perfvm-compute.conf": rendering.nova_conf,
        _PROVIDER: lambda config: config.provider,
        "/etc/nova/nova.conf.d/50-perfvm-scheduler.conf": rendering.scheduler_conf,
        "/etc/placement/placement.conf.d/50-perfvm.conf": rendering.placement_conf,
    },
    "helm": {
        "nova.yaml": _helm_nova,
        "placement.yaml": lambda config: {
            "conf": {"placement": _values(config.placement)}
        },
        _PROVIDER: lambda config: config.provider,
    },
    "rhoso": {
        "openstackcontrolplane.yaml": _rhoso_plane,
        "nova-extra-config.yaml": _rhoso_hosts,
    },
}


def files_of(tool: str, config: HostConfig) -> dict[str, str]:
    """Return the texts of a tool's files by path.

    :param tool: a key of :data:`TOOLS`
    """
    made = {path: content(config) for path, content in TOOLS[tool].items()}
    return {
        path: content if isinstance(content, str) else dump_yaml(content)
        for path, content in made.items()
        if content
    }
