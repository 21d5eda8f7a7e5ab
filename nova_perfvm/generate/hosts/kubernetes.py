# SPDX-License-Identifier: Apache-2.0
"""A host configuration for what deploys OpenStack on Kubernetes.

Where each takes what it adds to its own files:

* OpenStack-Helm's charts have values: ``conf.nova`` of all services, and below
  ``conf.overrides`` what a host alone has (helm-toolkit, ``daemonset_overrides``).  An
  option that is there several times is a ``multistring``.  Files come by
  ``pod.mounts``.
* The operators of RHOSO put ``customServiceConfig`` behind their own configuration
  (nova-operator, placement-operator).  Of the ConfigMap ``nova-extra-config``, hosts
  read files ``*nova*.conf`` in order, and ``provider*.yaml`` (edpm-ansible, role
  edpm_nova).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nova_perfvm.generate import options
from nova_perfvm.generate.hosts import rendering
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.options import Setting

# To be replaced by the host's name in the tool's inventory.
HOST: Final = "HOST"
PROVIDER_DIRECTORY: Final = "/etc/nova/provider_config"

HELM: Final = ("nova.yaml", "placement.yaml", f"{PROVIDER_DIRECTORY}/perfvm.yaml")
RHOSO: Final = ("openstackcontrolplane.yaml", "nova-extra-config.yaml")

_POLICY_CONFIG_MAP: Final = "nova-perfvm-policy"


def helm_files(config: HostConfig) -> dict[str, str]:
    """Return values of the charts nova and placement, and what is put on the host."""
    nova: dict[str, Any] = {
        "conf": {
            "nova": _values(config.scheduler),
            "overrides": {
                "nova_compute": {
                    "hosts": [{"name": HOST, "conf": {"nova": _values(config.nova)}}]
                }
            },
        }
    }
    mounts = _mounts(config)
    if mounts:
        nova["pod"] = {"mounts": mounts}
    placement = {"conf": {"placement": _values(config.placement)}}
    files = [rendering.as_yaml(nova), rendering.as_yaml(placement)]
    if config.provider is not None:
        files.append(rendering.provider_yaml(config))
    return dict(zip(HELM, files, strict=False))


def rhoso_files(config: HostConfig) -> dict[str, str]:
    """Return a patch of the control plane, and the ConfigMap of a node set's hosts."""
    nova = {"schedulerServiceTemplate": _custom(config.scheduler)}
    policy = [setting for setting in config.scheduler if _names_policy(setting)]
    if policy:
        nova["apiServiceTemplate"] = _custom(policy)
    plane = {
        "spec": {
            "nova": {"template": nova},
            "placement": {"template": _custom(config.placement)},
        }
    }
    data = {"50-nova-perfvm.conf": options.as_ini(config.nova)}
    if config.provider is not None:
        data["provider-perfvm.yaml"] = rendering.provider_yaml(config)
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nova-extra-config", "namespace": "openstack"},
        "data": data,
    }
    return dict(
        zip(
            RHOSO,
            (rendering.as_yaml(plane), rendering.as_yaml(config_map)),
            strict=True,
        )
    )


def _names_policy(setting: Setting) -> bool:
    return bool(setting.values) and setting.key == options.policy_file(None).key


def _values(settings: Iterable[Setting]) -> dict[str, dict[str, Any]]:
    """Return options by section, as helm-toolkit's ``to_oslo_conf`` has them."""
    return options.by_section(
        settings, lambda values: {"type": "multistring", "values": list(values)}
    )


def _mounts(config: HostConfig) -> dict[str, Any]:
    """Return what brings the policy to its readers, and provider.yaml to its host."""
    found = {}
    if any(map(_names_policy, config.scheduler)):
        where = options.POLICY_FILE
        mount = {"mountPath": where, "subPath": where.rpartition("/")[2]}
        source = {"configMap": {"name": _POLICY_CONFIG_MAP}}
        for name in ("nova_scheduler", "nova_api_osapi"):
            found[name] = {name: _mount("perfvm-policy", mount, source)}
    if config.provider is not None:
        source = {"hostPath": {"path": PROVIDER_DIRECTORY}}
        mount = {"mountPath": PROVIDER_DIRECTORY}
        found["nova_compute"] = {
            "nova_compute": _mount("perfvm-provider", mount, source)
        }
    return found


def _mount(name: str, mount: dict[str, str], source: dict[str, Any]) -> dict[str, Any]:
    return {
        "volumeMounts": [{"name": name, **mount, "readOnly": True}],
        "volumes": [{"name": name, **source}],
    }


def _custom(settings: Iterable[Setting]) -> dict[str, str]:
    return {"customServiceConfig": options.as_ini(settings)}
