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
    help="Whether the cloud's nova-scheduler and nova-api run with nova-perfvm.",
)

group = cfg.OptGroup("perfvm", title="VM classes of nova-perfvm")

options = [
    cfg.StrOpt(
        "high_performance_flavor",
        help="Name of a flavor of the tested pinned class. If unset, all tests are "
        "skipped.",
    ),
    cfg.StrOpt(
        "high_performance_flavor_alt",
        help="Name of a flavor of another pinned class, for policies whose pinned "
        "classes share hosts and NUMA nodes.",
    ),
    cfg.StrOpt(
        "general_flavor",
        help="Name of a flavor of the default class. If unset, all tests are skipped.",
    ),
    cfg.StrOpt(
        "general_flavor_alt",
        help="Name of another flavor of the default class, for resizing a VM of "
        "general_flavor. If unset or equal to general_flavor, tests of resizing are "
        "skipped.",
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
        help="Number of high-performance VMs that fit the largest host. The number for "
        "smaller hosts is read from Placement, except with placement = none.",
    ),
    cfg.StrOpt(
        "exclusive",
        default="host",
        choices=[
            ("host", "each host serves one class at a time"),
            ("cell", "each NUMA node serves one class at a time, a host both"),
            ("none", "both classes share NUMA nodes"),
        ],
        help="Value of the class's key exclusive: where VMs of other classes may run "
        "beside a high-performance VM. Tests of exclusive hosts need the value host.",
    ),
    cfg.StrOpt(
        "placement",
        default=Policy.placement,
        choices=[(scheme.name, scheme.summary) for scheme in SCHEMES.values()],
        help="Value of the policy's key placement: what Placement counts.",
    ),
]
