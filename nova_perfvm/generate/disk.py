# SPDX-License-Identifier: Apache-2.0
"""Files and commands for a guarantee of I/O operations per second."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate.hosts import provider

FILES: Final = ("policy.yaml", "provider.yaml", "commands.sh")

_LOCAL: Final = """\
# The quota caps each local disk of a VM, so that none takes what others were promised.
"""
_VOLUME: Final = """\
# QEMU caps each volume of a VM, from its next attachment on. Nobody counts the array:
# keep the sum of all hosts' inventories below what it gives.
"""


def files(
    capacity: Mapping[str, int],
    guarantee: Mapping[str, int],
    volume_type: str | None = None,
) -> dict[str, str]:
    """Return the content of each of ``FILES``.

    :param capacity: for ``read`` and ``write``, what the disks of a host give to
        several VMs in sum
    :param guarantee: what each VM is promised, for those that are guaranteed
    :param volume_type: Cinder's, for network volumes; None for local disks
    """
    counted = {kind: capacity[kind] for kind in guarantee}
    # Placement takes no inventory of 0.
    offered = {kind: n for kind, n in counted.items() if n > 0}
    keys = {f"{kind}_iops": amount for kind, amount in guarantee.items()}
    options = "".join(f" --{kind}-iops {n}" for kind, n in counted.items())
    return {
        "policy.yaml": "# Keys of a class, classes.NAME.disk, in the policy.\n"
        + dump_yaml({"disk": keys}),
        "provider.yaml": "# Or all of a host's: nova-perfvm host config"
        f"{options} ...\n"
        + dump_yaml(provider.of_compute_node(provider.iops_inventories(offered), [])),
        "commands.sh": _commands(guarantee, volume_type),
    }


def _commands(guarantee: Mapping[str, int], volume_type: str | None) -> str:
    resources = {
        f"resources:{provider.CLASS_OF[kind]}": n for kind, n in guarantee.items()
    }
    flavor = ("openstack", "flavor", "set")
    if volume_type is None:
        quotas = {f"quota:disk_{kind}_iops_sec": n for kind, n in guarantee.items()}
        lines = [(*flavor, *_properties(resources | quotas))]
    else:
        caps = {f"{kind}_iops_sec": n for kind, n in guarantee.items()}
        name = f"perfvm-{volume_type}"
        front_end = ("--consumer", "front-end")
        volume = ("openstack", "volume")
        lines = [
            (*flavor, *_properties(resources)),
            (*volume, "type", "create", volume_type),
            (*volume, "qos", "create", *front_end, *_properties(caps), name),
            (*volume, "qos", "associate", name, volume_type),
        ]
    # The flavor's name comes from outside.
    commands = [shlex.join(line) for line in lines]
    commands[0] += ' "$FLAVOR"'
    head = "#!/bin/sh\n" + (_LOCAL if volume_type is None else _VOLUME)
    asked = ': "${FLAVOR:?name of the flavor}"\n'
    return head + "set -e\n" + asked + "".join(f"{line}\n" for line in commands)


def _properties(values: Mapping[str, int]) -> list[str]:
    return [word for key, n in values.items() for word in ("--property", f"{key}={n}")]
