# SPDX-License-Identifier: Apache-2.0
"""The options that the plugin adds to tempest.conf.

``nova-perfvm tempest config`` prints their values from a policy.
"""

from __future__ import annotations

from typing import Final

from oslo_config import cfg

from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.policy import Policy

SERVICE_GROUP: Final = "service_available"

service_option = cfg.BoolOpt(
    "perfvm",
    default=False,
    help="Whether nova-scheduler and nova-api of the cloud run with nova-perfvm.",
)

group = cfg.OptGroup("perfvm", title="VM classes of nova-perfvm")

options = [
    cfg.StrOpt(
        "high_performance_flavor",
        help="Name of a flavor of the pinned class that is tested. Without it the "
        "tests are skipped.",
    ),
    cfg.StrOpt(
        "high_performance_flavor_alt",
        help="Name of a flavor of another pinned class, whose VMs share hosts and NUMA "
        "nodes with those of the first, where the policy has one.",
    ),
    cfg.StrOpt(
        "general_flavor",
        help="Name of a flavor of the default class. Without it the tests are skipped.",
    ),
    cfg.StrOpt(
        "general_flavor_alt",
        help="Name of another flavor of the default class, to which a VM with the "
        "first can be resized. Without it, or if it is the same, resizing is skipped.",
    ),
    cfg.IntOpt(
        "vcpus",
        default=20,
        min=1,
        help="vCPUs of a high-performance VM, each on a CPU of its own.",
    ),
    cfg.IntOpt(
        "max_per_host",
        default=2,
        min=1,
        help="High-performance VMs that fit the largest host, and never more. What a "
        "smaller one takes is read from Placement, unless it knows nothing of classes.",
    ),
    cfg.StrOpt(
        "exclusive",
        default="host",
        choices=[
            ("host", "a host has VMs of one class"),
            ("cell", "a NUMA node has VMs of one class, and its host of both"),
            ("none", "VMs of both classes are neighbours"),
        ],
        help="What a high-performance VM keeps the other class off, as the class's key "
        "of the same name. Tests that no host has both classes are skipped unless it "
        "is host.",
    ),
    cfg.StrOpt(
        "placement",
        default=Policy.placement,
        choices=[(scheme.name, scheme.summary) for scheme in SCHEMES.values()],
        help="What Placement counts, as the policy's key of the same name.",
    ),
]
