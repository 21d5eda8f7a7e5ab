# SPDX-License-Identifier: Apache-2.0
"""A host configuration as files, as one text to read, or as data."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nova_perfvm import cpuset
from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate import labels, options
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.hosts.kernel import KernelAdvice
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.settings import Setting
from nova_perfvm.printable import number_of

NOVA_CONF: Final = "nova.conf"
PROVIDER_YAML: Final = "provider.yaml"
SCHEDULER_CONF: Final = "scheduler.conf"
PLACEMENT_CONF: Final = "placement.conf"
# Every file that a run may write; a run that writes fewer removes the others of an
# earlier run.
FILES: Final = (NOVA_CONF, PROVIDER_YAML, SCHEDULER_CONF, PLACEMENT_CONF)

_WIDTH: Final = 88


def as_files(config: HostConfig) -> dict[str, str]:
    """Return the content of each file by its name."""
    files = {NOVA_CONF: nova_conf(config)}
    if config.provider is not None:
        files[PROVIDER_YAML] = dump_yaml(config.provider)
    return files | {
        SCHEDULER_CONF: scheduler_conf(config),
        PLACEMENT_CONF: placement_conf(config),
    }


def as_text(files: Mapping[str, str]) -> str:
    """Return files one after the other, each below a line with its path."""
    return "\n".join(f"# ==> {path}\n{text}" for path, text in files.items())


def as_document(config: HostConfig) -> dict[str, Any]:
    """Return the whole configuration as plain data, for JSON and YAML."""
    return {
        "host": {
            "topology": str(config.request.topology),
            "source": config.request.topology.source,
            "mode": config.request.mode,
            "class": labels.label_of(config.room) or None,
            "label": labels.label_of(config.classes),
            "slots": config.slots,
            "housekeeping_cpus": cpuset.format_cpus(config.cpus.housekeeping),
            "idle_cpus": cpuset.format_cpus(config.cpus.idle),
        },
        "files": as_files(config),
        "nova_conf": options.by_section(config.nova, list),
        "provider_yaml": config.provider,
        "kernel": dataclasses.asdict(config.kernel),
        "scheduler_conf": options.by_section(config.scheduler, list),
        "placement_conf": options.by_section(config.placement, list),
        "warnings": list(config.warnings),
        "notes": list(config.notes),
        "label_commands": list(config.label_commands),
    }


def nova_conf(config: HostConfig) -> str:
    """Return nova.conf of the host, below the warnings and notes about it."""
    held = " or ".join(
        f"{number_of(count, 'slot')} of class {vm_class.name}"
        for vm_class, count in config.room.items()
    )
    request = config.request
    said = (
        f"{request.mode} host {request.topology}: {held or 'general VMs only'}.",
        f"Policy SHA-256 {request.policy.digest[:12]}.",
        *(f"WARNING: {warning}" for warning in config.warnings),
        *config.notes,
    )
    head = "".join(comment(text, "  ") for text in said)
    if config.label_commands:
        head += comment(
            "The filter learns a host's classes from its label. When nova-compute runs "
            "with this file, before the host takes VMs (create the aggregate once):"
        ) + _lines(config.label_commands)
    return f"{head}\n{ini(config.nova)}\n{_kernel(config.kernel)}"


def scheduler_conf(config: HostConfig) -> str:
    """Return the file for nova-schedulers."""
    return comment(
        "For the nova.conf of every nova-scheduler: add this, and restart it."
    ) + ini(config.scheduler)


def placement_conf(config: HostConfig) -> str:
    """Return the file for Placement, with commands that create forbidden traits."""
    head = comment(
        "For the placement.conf of every Placement API: add this, and restart it."
    )
    policy = config.request.policy
    traits = sorted(scheme_of(policy).traits_to_avoid(policy))
    if traits:
        head += comment(
            "Create the trait before the first generated flavor, unless a host has "
            "reported it; otherwise Placement answers 400 and no general VM boots:"
        ) + _lines(
            f"openstack --os-placement-api-version 1.6 trait create {trait}"
            for trait in traits
        )
    return head + ini(config.placement)


def _kernel(advice: KernelAdvice) -> str:
    lines = [
        f"kernel arguments: {' '.join(advice.arguments) or 'none'}",
        f"tuned: tuned-adm profile {advice.tuned_profile}",
    ]
    if advice.isolated_cores:
        lines.append(
            "with /etc/tuned/cpu-partitioning-variables.conf: isolated_cores="
            + advice.isolated_cores
        )
    if advice.cpu_affinity:
        lines.append(f"/etc/systemd/system.conf: CPUAffinity={advice.cpu_affinity}")
    return comment("Beside nova.conf, for the host itself:") + _lines(lines)


def ini(settings: Iterable[Setting]) -> str:
    """Return settings, each below its reason as a comment."""
    return options.as_ini(settings, lambda setting: comment(setting.why))


def _lines(lines: Iterable[str]) -> str:
    """Return lines as comments without wrapping, ready to paste."""
    return "".join(f"#   {line}\n" for line in lines)


def comment(text: str, indent: str = "") -> str:
    """Return a text as comment lines; `indent` follows the ``#`` but on the first."""
    lines = textwrap.wrap(
        " ".join(text.split()),
        width=_WIDTH - 2,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"# {line}\n" for line in lines)
