# SPDX-License-Identifier: Apache-2.0
"""What belongs to the controllers, once for the whole cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.generate.hosts.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.policy import Policy

POLICY_FILE: Final = "/etc/nova/perfvm.yaml"

# [filter_scheduler]enabled_filters of Nova 34 as it comes.
_NOVA_FILTERS: Final = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)


def scheduler_settings(policy: Policy, policy_file: str | None) -> tuple[Setting, ...]:
    """Return what nova-scheduler's nova.conf needs.

    :param policy_file: the policy that was used; None for the built-in one
    """
    return tuple(_scheduler(policy, policy_file))


def _scheduler(policy: Policy, policy_file: str | None) -> Iterator[Setting]:
    yield Setting(
        "filter_scheduler",
        "available_filters",
        (
            "nova.scheduler.filters.all_filters",
            "nova_perfvm.scheduler.filters.all_filters",
        ),
        "Two lines: with ours alone, Nova's own filters would not be found.",
    )
    filters = (*_NOVA_FILTERS, "PerfVMFilter", "NUMATopologyFilter")
    yield Setting(
        "filter_scheduler",
        "enabled_filters",
        (",".join(filters),),
        "Nova's default and two more. If your list differs, keep it and add "
        "PerfVMFilter, then NUMATopologyFilter, which costs a hundred times as much "
        "a host.",
    )
    yield Setting(
        "filter_scheduler",
        "weight_classes",
        (
            (
                "nova.scheduler.weights.all_weighers,"
                "nova_perfvm.scheduler.weights.PerfVMWeigher"
            ),
        ),
        "The weigher packs, so that general VMs do not break into every free slot.",
    )
    if policy.placement == "units":
        yield Setting(
            "scheduler",
            "enable_isolated_aggregate_filtering",
            ("True",),
            "Keeps VMs whose flavors know nothing of units off enrolled hosts.",
        )
        yield Setting(
            "workarounds",
            "disable_fallback_pcpu_query",
            ("False",),
            "Elastic hosts report VCPU alone; by this second query pinned VMs get in.",
        )
    else:
        yield Setting(
            "workarounds",
            "disable_fallback_pcpu_query",
            ("True",),
            "Pinned VMs ask for PCPU alone; else they also get onto hosts that have no "
            "cpu sets.",
        )
    yield _policy_file(policy_file)


def _policy_file(policy_file: str | None) -> Setting:
    if policy_file is None:
        return Setting(
            "perfvm",
            "policy_file",
            (),
            "Left unset: this was made from the built-in policy, which is also what "
            "nova-scheduler and nova-api then use.",
        )
    return Setting(
        "perfvm",
        "policy_file",
        (POLICY_FILE,),
        "The file that this was made from, copied there on every controller; "
        "nova-api's nova.conf needs the line, too.",
    )


def placement_settings() -> tuple[Setting, ...]:
    """Return what placement.conf needs."""
    return (
        Setting(
            "placement",
            "allocation_conflict_retry_count",
            ("1",),
            "With the default, 10, Placement grants more than the inventory when "
            "several requests reach one host at once (seen on MariaDB: 160 of 40 "
            "PCPU). With 1 it did not, and more VMs booted, as Nova retries itself.",
        ),
    )
