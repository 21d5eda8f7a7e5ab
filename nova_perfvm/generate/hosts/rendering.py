# SPDX-License-Identifier: Apache-2.0
"""A host configuration as files, as one text to read, or as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any, Final

import yaml

from nova_perfvm import cpuset
from nova_perfvm.generate import labels, options
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.hosts.kernel import KernelAdvice
from nova_perfvm.generate.options import Setting
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

NOVA_CONF: Final = "nova.conf"
PROVIDER_YAML: Final = "provider.yaml"
SCHEDULER_CONF: Final = "scheduler.conf"
PLACEMENT_CONF: Final = "placement.conf"

# What each file is.
_TITLES: Final = {
    NOVA_CONF: "nova.conf of this compute host",
    PROVIDER_YAML: "provider.yaml of this compute host",
    SCHEDULER_CONF: "nova.conf of every nova-scheduler",
    PLACEMENT_CONF: "placement.conf of every Placement API",
}
# Every file that may be written; a run that writes fewer must not leave the
# others of an earlier run lying about.
FILES: Final = tuple(_TITLES)

_WIDTH: Final = 88


def as_files(config: HostConfig) -> dict[str, str]:
    """Return the content of each file by its name."""
    files = {
        NOVA_CONF: _comment(_headline(config), "") + _host(config),
        SCHEDULER_CONF: _comment(
            "For the nova.conf of every nova-scheduler, which is then restarted."
        )
        + _ini(config.scheduler),
        PLACEMENT_CONF: _comment(
            "For the placement.conf of every Placement API, which is then restarted."
        )
        + _names(config.request.policy)
        + _ini(config.placement),
    }
    if config.provider is not None:
        files[PROVIDER_YAML] = provider_yaml(config)
    return {name: files[name] for name in FILES if name in files}


def as_ini(config: HostConfig) -> str:
    """Return all files one after the other, provider.yaml as a comment."""
    files = as_files(config)
    if PROVIDER_YAML in files:
        files[PROVIDER_YAML] = _comment(
            "Without the '# ', or written by --output-dir:"
        ) + textwrap.indent(files[PROVIDER_YAML], "# ", lambda _: True)
    return "\n".join(
        f"# {f' {_TITLES[name]} ':=^{_WIDTH - 2}}\n{text}"
        for name, text in files.items()
    )


def provider_yaml(config: HostConfig) -> str:
    """Return provider.yaml."""
    return as_yaml(config.provider)


class _Dumper(yaml.SafeDumper):
    """YAML without anchors, and with texts of several lines as blocks."""

    def ignore_aliases(self, _data: object) -> bool:
        """Return True: a value that occurs twice is written twice, not as an alias."""
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, "|" if "\n" in text else None
    ),
)


def as_yaml(document: Any) -> str:
    """Return a document as YAML, its keys in the order that they have."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return text


def as_document(config: HostConfig) -> dict[str, Any]:
    """Return everything as plain data, for JSON and YAML."""
    return {
        "host": {
            "topology": str(config.request.topology),
            "source": config.request.topology.source,
            "mode": config.request.mode,
            "class": None if config.vm_class is None else config.vm_class.name,
            "label": labels.label_of(config.classes),
            "slots": config.slots,
            "housekeeping_cpus": cpuset.format_cpus(config.cpus.housekeeping),
            "idle_cpus": cpuset.format_cpus(config.cpus.idle),
        },
        "files": as_files(config),
        "nova_conf": _sections(config.nova),
        "provider_yaml": config.provider,
        "kernel": {
            "arguments": list(config.kernel.arguments),
            "tuned_profile": config.kernel.tuned_profile,
            "isolated_cores": config.kernel.isolated_cores,
            "cpu_affinity": config.kernel.host_cpus,
        },
        "scheduler_conf": _sections(config.scheduler),
        "placement_conf": _sections(config.placement),
        "warnings": list(config.warnings),
        "notes": list(config.notes),
        "label_commands": list(config.label_commands),
    }


def _sections(settings: Iterable[Setting]) -> dict[str, dict[str, str | list[str]]]:
    """Return options by section; a list where an option has several lines."""
    return options.by_section(settings, list)


def _headline(config: HostConfig) -> str:
    held = (
        "general VMs only"
        if config.vm_class is None
        else f"{number_of(config.slots, 'slot')} of class {config.vm_class.name}"
    )
    return (
        f"{config.request.mode} host {config.request.topology}: {held}. "
        f"Policy SHA-256 {config.request.policy.digest[:12]}."
    )


def _host(config: HostConfig) -> str:
    """Return nova.conf of the host, below the warnings and notes about it."""
    head = "".join(
        _comment(f"WARNING: {warning}", "  ") for warning in config.warnings
    ) + "".join(_comment(note, "  ") for note in config.notes)
    if config.label_commands:
        head += _comment(
            "The filter knows by its label what the host is for. When nova-compute "
            "runs with this, before the host takes VMs (the aggregate is made once):"
        ) + "".join(f"#   {command}\n" for command in config.label_commands)
    return f"{head}\n{_ini(config.nova)}\n{_kernel(config.kernel)}"


def _names(policy: Policy) -> str:
    """Return the commands that make the traits which general flavors forbid."""
    traits = scheme_of(policy).traits_to_avoid(policy)
    if not traits:
        return ""
    return _comment(
        "Before the first generated flavor, and until a host reports it, the trait has "
        "to be made, or Placement answers 400 and no general VM boots:"
    ) + "".join(
        f"#   openstack --os-placement-api-version 1.6 trait create {trait}\n"
        for trait in sorted(traits)
    )


def _kernel(advice: KernelAdvice) -> str:
    lines = [
        "Beside nova.conf, for the host itself:",
        f"kernel arguments: {' '.join(advice.arguments) or 'none'}",
        f"tuned: tuned-adm profile {advice.tuned_profile}",
    ]
    if advice.isolated_cores:
        lines.append(
            "  with /etc/tuned/cpu-partitioning-variables.conf: isolated_cores="
            + advice.isolated_cores
        )
    if advice.host_cpus:
        lines.append(f"/etc/systemd/system.conf: CPUAffinity={advice.host_cpus}")
    # A line to paste is not wrapped.
    facts = "".join(f"# {line}\n" for line in lines)
    return facts + "".join(_comment(sentence) for sentence in advice.why)


def _ini(settings: Iterable[Setting]) -> str:
    """Return settings with the reason for each above it."""
    return options.as_ini(settings, lambda setting: _comment(setting.why))


def _comment(text: str, indent: str = "") -> str:
    """Return a text as comment lines; no line of it can be anything else."""
    lines = textwrap.wrap(
        " ".join(text.split()),
        width=_WIDTH - 2,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"# {line}\n" for line in lines)
