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

Those on Kubernetes are in :mod:`nova_perfvm.generate.hosts.kubernetes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from nova_perfvm.generate.hosts import kubernetes, rendering
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.options import Setting, by_section

_KOLLA: Final = "/etc/kolla/config"
_OSA: Final = "/etc/openstack_deploy"
_HOST: Final = kubernetes.HOST
_PLAIN: Final = {
    rendering.NOVA_CONF: "/etc/nova/nova.conf.d/50-perfvm-compute.conf",
    rendering.PROVIDER_YAML: f"{kubernetes.PROVIDER_DIRECTORY}/perfvm.yaml",
    rendering.SCHEDULER_CONF: "/etc/nova/nova.conf.d/50-perfvm-scheduler.conf",
    rendering.PLACEMENT_CONF: "/etc/placement/placement.conf.d/50-perfvm.conf",
}
# Each tool's files that may be there; a host without a provider.yaml has fewer.
KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "kolla": (
        f"{_KOLLA}/nova/{_HOST}/nova.conf",
        f"{_KOLLA}/nova/nova-scheduler.conf",
        f"{_KOLLA}/placement.conf",
        f"host_vars/{_HOST}.yml",
    ),
    "osa": (
        f"{_OSA}/host_vars/{_HOST}.yml",
        f"{_OSA}/group_vars/nova_scheduler.yml",
        f"{_OSA}/group_vars/placement_all.yml",
    ),
    "plain": tuple(_PLAIN.values()),
    "helm": kubernetes.HELM,
    "rhoso": kubernetes.RHOSO,
}


def kolla_files(config: HostConfig) -> dict[str, str]:
    """Return the files of Kolla-Ansible by path; host_vars beside its inventory."""
    own = rendering.as_files(config)
    files = [
        own[rendering.NOVA_CONF],
        own[rendering.SCHEDULER_CONF],
        own[rendering.PLACEMENT_CONF],
    ]
    if config.provider is not None:
        files.append(
            rendering.as_yaml({"nova_cell_compute_provider_config": config.provider})
        )
    return dict(zip(KNOWN["kolla"], files, strict=False))


def osa_files(config: HostConfig) -> dict[str, str]:
    """Return the files of OpenStack-Ansible by path."""
    host: dict[str, Any] = {"nova_nova_conf_overrides": _overrides(config.nova)}
    if config.provider is not None:
        host["nova_provider_overrides"] = [
            {"name": "perfvm", "content": config.provider}
        ]
    scheduler = {"nova_nova_conf_overrides": _overrides(config.scheduler)}
    placement = {"placement_placement_conf_overrides": _overrides(config.placement)}
    files = [
        rendering.as_yaml(host),
        rendering.as_yaml(scheduler),
        rendering.as_yaml(placement),
    ]
    return dict(zip(KNOWN["osa"], files, strict=True))


def plain_files(config: HostConfig) -> dict[str, str]:
    """Return the files of services that read their own directories, by path."""
    own = rendering.as_files(config)
    return {_PLAIN[name]: text for name, text in own.items()}


FILES: Final[Mapping[str, Callable[[HostConfig], dict[str, str]]]] = {
    "kolla": kolla_files,
    "osa": osa_files,
    "plain": plain_files,
    "helm": kubernetes.helm_files,
    "rhoso": kubernetes.rhoso_files,
}


def as_text(tool: str, config: HostConfig) -> str:
    """Return all files of a tool, each below a line with its path.

    :param tool: a key of :data:`FILES`
    """
    files = FILES[tool](config)
    return "\n".join(f"# ==> {path}\n{text}" for path, text in files.items())


def below(tool: str, config: HostConfig) -> dict[str, str]:
    """Return all files of a tool by their path below a directory.

    :param tool: a key of :data:`FILES`
    """
    return {path.lstrip("/"): text for path, text in FILES[tool](config).items()}


def known_below(tool: str) -> tuple[str, ...]:
    """Return every path that :func:`below` may have for a tool."""
    return tuple(path.lstrip("/") for path in KNOWN[tool])


def _overrides(settings: Iterable[Setting]) -> dict[str, dict[str, Any]]:
    """Return options by section, as config_template has them."""
    return by_section(settings, dict.fromkeys)
