# SPDX-License-Identifier: Apache-2.0
"""The options of nova.conf and placement.conf that a policy needs, in one table.

``host config`` writes these options; preflight, ``policy check``, ``explain`` and the
upgrade check compare a cloud's configuration files with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from shlex import quote
from typing import Any, Final

from nova_perfvm import findings as codes
from nova_perfvm.documents.mistakes import DocumentError, UnreadableFileError
from nova_perfvm.findings import Finding
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.settings import PLACEMENT, SCHEDULER, Setting
from nova_perfvm.policy import Policy
from nova_perfvm.printable import first_line
from nova_perfvm.rules.enabled_filters import FILTER, NOVA_FILTERS, NUMA_FILTER

POLICY_FILE: Final = "/etc/nova/perfvm.yaml"
# Options of a configuration file: {(section, option): value}.
FileOptions = dict[tuple[str, str], str]


AVAILABLE_FILTERS: Final = Setting(
    "filter_scheduler",
    "available_filters",
    (
        "nova.scheduler.filters.all_filters",
        "nova_perfvm.scheduler.filters.all_filters",
    ),
    "Two lines: with the second line alone, Nova would not find its own filters.",
    SCHEDULER,
)
ENABLED_FILTERS: Final = Setting(
    "filter_scheduler",
    "enabled_filters",
    (",".join((*NOVA_FILTERS, FILTER, NUMA_FILTER)),),
    f"Nova's default and two more. If your list differs, keep it and add {FILTER}, "
    f"then {NUMA_FILTER} in the place of NUMATopologyFilter: the same verdicts, for "
    "a fraction of the cost.",
    SCHEDULER,
)
WEIGHT_CLASSES: Final = Setting(
    "filter_scheduler",
    "weight_classes",
    (
        "nova.scheduler.weights.all_weighers,nova_perfvm.scheduler.weights.PerfVMWeigher",
    ),
    "The weigher packs, so that general VMs do not break into every free slot.",
    SCHEDULER,
)
RETRIES: Final = Setting(
    "placement",
    "allocation_conflict_retry_count",
    ("1",),
    "With the default, 10, Placement grants more than the inventory when several "
    "requests reach one host at once. With 1 Nova itself retries.",
    PLACEMENT,
    default="10",
    otherwise="where claims meet, Placement grants more than the inventory has",
)
# Needed unless nova-scheduler has the built-in policy.
POLICY: Final = Setting(
    "perfvm",
    "policy_file",
    (POLICY_FILE,),
    "Copy the policy file there on every controller; nova-api's nova.conf needs this "
    "line, too. The filter enforces: for a first rollout add mode = observe below.",
    SCHEDULER,
)
# nova-compute ends guests whose servers were deleted while it was cut off.
DELETED_POLL: Final = Setting(
    "DEFAULT",
    "running_deleted_instance_poll_interval",
    ("60",),
    "If a server is deleted while this nova-compute is cut off, its guest goes on "
    "running, on CPUs that Nova gives to other servers.",
)
DELETED_ACTION: Final = Setting(
    "DEFAULT",
    "running_deleted_instance_action",
    ("reap",),
    "Nova's default, which ends such a guest.",
)
DEDICATED_SET: Final = Setting(
    "compute",
    "cpu_dedicated_set",
    (),
    "CPUs that pinned VMs own: the host's PCPU inventory.",
)
SHARED_SET: Final = Setting(
    "compute",
    "cpu_shared_set",
    (),
    "CPUs that all other VMs share: the host's VCPU inventory.",
)
TABLE: Final = (
    AVAILABLE_FILTERS,
    ENABLED_FILTERS,
    WEIGHT_CLASSES,
    RETRIES,
    DELETED_POLL,
    DELETED_ACTION,
    DEDICATED_SET,
    SHARED_SET,
)


def wanted(policy: Policy, service: str) -> tuple[Setting, ...]:
    """Return the options that a policy needs in a service's configuration file."""
    settings = (*TABLE, *host_scheme_of(policy).settings)
    return tuple(setting for setting in settings if setting.service == service)


def by_section(
    settings: Iterable[Setting], several: Callable[[tuple[str, ...]], Any]
) -> dict[str, dict[str, Any]]:
    """Return {section: {option: value}}.

    :param several: returns the value of an option that has several lines
    """
    found: dict[str, dict[str, Any]] = {}
    for setting in settings:
        value = several(setting.values) if setting.values[1:] else setting.values[0]
        found.setdefault(setting.section, {})[setting.option] = value
    return found


def as_ini(
    settings: Iterable[Setting], comment: Callable[[Setting], str] = lambda _: ""
) -> str:
    """Return settings in oslo.config's file format, section by section.

    :param comment: returns the comment above an option
    """
    sections: dict[str, str] = {}
    for setting in settings:
        lines = "".join(f"{setting.option} = {value}\n" for value in setting.values)
        section = sections.setdefault(setting.section, f"[{setting.section}]\n")
        sections[setting.section] = section + comment(setting) + lines
    return "\n".join(sections.values())


def not_enforced(found: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield a remark if by a copy of nova.conf the filter refuses no host.

    A missing enabled_filters is no reason: nova-scheduler may read several files.
    """
    enabled = found.get((ENABLED_FILTERS.section, ENABLED_FILTERS.option))
    if enabled is not None and FILTER not in re.split(r"[,\s]+", enabled):
        why = f"{ENABLED_FILTERS} lacks {FILTER}"
    elif found.get(("perfvm", "mode")) == "observe":
        why = "[perfvm]mode is observe"
    else:
        return
    yield (
        f"{why}: {FILTER} refuses no host, and the rules do not count for explain; "
        "plans and capacity keep to them all the same"
    )


def judge_mode(mode: str) -> Iterator[Finding]:
    """Yield a finding if ``[perfvm]mode`` is not enforce."""
    remedy = f"set [perfvm]mode = enforce for {SCHEDULER}, and restart it"
    words = f"[perfvm]mode is {mode}: "
    if mode == "observe":
        words += f"{FILTER} refuses nothing, and only Placement holds the policy"
        yield Finding.of(codes.MODE_OBSERVE, "nova.conf", words, remedy)
    elif mode != "enforce":
        words += f"{SCHEDULER} does not start"
        yield Finding.of(codes.NOT_ENFORCED, "nova.conf", words, remedy)


def judge_policy(
    path: str | None, enforced: Policy | DocumentError, policy: Policy
) -> Iterator[Finding]:
    """Yield a finding unless the controllers' policy is the operator's policy.

    :param path: value of ``[perfvm]policy_file``; None if unset
    :param enforced: the controllers' policy, or the error of reading it
    :param policy: the operator's policy
    """
    code = codes.NOT_ENFORCED
    remedy = f"nova-perfvm policy check {quote(path) if path else 'FILE'}"
    stated = f"{POLICY} is {path or 'not set, which means the built-in policy'}"
    if isinstance(enforced, UnreadableFileError):
        code, remedy = codes.ENFORCED_UNKNOWN, f"on a controller: {remedy}"
        stated += f", cannot be read here; this policy has SHA-256 {policy.digest}"
    elif isinstance(enforced, DocumentError):
        stated = f"{SCHEDULER} does not start: {first_line(enforced)}"
    elif enforced.digest == policy.digest:
        return
    else:
        stated += f", SHA-256 {enforced.digest}; this policy has {policy.digest}"
        remedy = POLICY.remedy
    yield Finding.of(code, "nova.conf", stated, remedy)
