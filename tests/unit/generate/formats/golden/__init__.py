# SPDX-License-Identifier: Apache-2.0
"""Policies whose flavors are generated, and what tools are to read of them."""

import pathlib

from nova_perfvm.policy import loader

POLICIES = {
    "built-in": loader.load(),
    "units": loader.load(str(pathlib.Path(__file__).with_name("units.yaml"))),
}


def values(flavor):
    """Return what a file says of a flavor, by the names that tools have for it."""
    return {
        "name": flavor.name,
        "ram": flavor.memory_mb,
        "vcpus": flavor.vcpus,
        "disk": flavor.root_gb,
        "ephemeral": 0,
        "swap": 0,
        "is_public": True,
        "extra_specs": flavor.extra_specs,
    }
