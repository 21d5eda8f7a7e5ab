# SPDX-License-Identifier: Apache-2.0
"""What the plugin must do, each fact stated once.

Each takes a node on which a script has run, and raises an AssertionError.
``test_plugin`` asserts them of the plugin, ``test_mistakes`` that plugins with
the classic mistakes do not get past them.
"""

import re

NOVAS_FILTERS = "nova.scheduler.filters.all_filters"
OUR_FILTERS = "nova_perfvm.scheduler.filters.all_filters"
NOVAS_WEIGHERS = "nova.scheduler.weights.all_weighers"
OUR_WEIGHER = "nova_perfvm.scheduler.weights.PerfVMWeigher"

ENABLED = ("filter_scheduler", "enabled_filters")
AVAILABLE = ("filter_scheduler", "available_filters")
WEIGHERS = ("filter_scheduler", "weight_classes")

PHASES = [
    "source",
    "stack pre-install",
    "stack install",
    "stack post-config",
    "stack extra",
    "stack test-config",
    "stack a-phase-to-come",
    "a-mode-to-come",
]


def equal(expected, observed):
    """Compare; an error shows both."""
    if expected != observed:
        raise AssertionError(f"expected {expected!r}, observed {observed!r}")


def every_phase_ends_well(node):
    """Under errexit and an ERR trap, phases of later DevStacks included."""
    equal((PHASES, ""), (node.lines("phases"), _errors(node)))


def _errors(node):
    return "".join(
        line for line in node.output.splitlines() if line.startswith("ended by:")
    )


def nothing_leaks(node):
    """Directory, IFS, umask, shell options and traps stay; names are prefixed."""
    equal([], node.lines("leaks"))


def the_filter_is_listed_once_ahead_of_numa(node):
    filters = node.read("filters").strip().split(",")
    of_numa = ["PerfVMNUMATopologyFilter", "NUMATopologyFilter"]
    equal(
        ["PerfVMFilter", of_numa[0]],
        [name for name in filters if name in {"PerfVMFilter", *of_numa}],
    )
    # DevStack's own stay in their order ahead of them.
    equal("ComputeFilter", filters[0])
    equal(True, "DifferentHostFilter" in filters)


def nova_and_tempest_agree_on_filters(node):
    expected = [node.read("filters").strip()]
    equal(expected, node.nova[ENABLED])
    equal(
        expected, node.tempest["compute-feature-enabled", "scheduler_enabled_filters"]
    )


def available_filters_keep_others(node, others=()):
    """Nova's own first, those of other plugins, and ours, each in its line."""
    available = node.options("after-post-config/nova/nova.conf")[AVAILABLE]
    equal(NOVAS_FILTERS, available[0])
    equal(sorted([NOVAS_FILTERS, *others, OUR_FILTERS]), sorted(available))


def nothing_is_lost_to_neutron(node):
    """What configure_neutron_nova writes in the background, and what we write."""
    equal(["RegionOne"], node.nova["neutron", "region_name"])
    equal(True, ("perfvm", "policy_file") in node.nova)
    equal(True, OUR_FILTERS in node.nova.get(AVAILABLE, ()))


def nothing_races(node):
    """nova.conf is left alone while configure_neutron_nova is at it."""
    equal([], node.lines("races"))


def nova_compute_gets(node, expected):
    """In the copy of nova.conf that start_nova_compute makes.

    :param expected: values by section and option; None for an option that must
        not be there
    """
    for name, value in expected.items():
        equal((name, value), (name, node.nova_cpu.get(name)))


def nothing_of_ours_is_configured(node):
    """After unstack.sh, in any file that Nova or Placement reads."""
    for name in ("nova/nova.conf", "nova/nova-cpu.conf", "placement/placement.conf"):
        text = node.read(f"etc/{name}")
        words = ("perfvm", "PerfVM", "NUMATopology", "cpu_", "retry")
        equal((name, []), (name, [word for word in words if word in text]))
        # DevStack itself may have put something there.
        equal(None, re.search(r"(?m)^\[workarounds\]\s*(\[|\Z)", text))
