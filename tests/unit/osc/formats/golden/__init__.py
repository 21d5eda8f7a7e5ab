# SPDX-License-Identifier: Apache-2.0
"""What ``flavor generate`` and ``image generate`` write, word for word.

``built-in`` is of the built-in policy, ``units`` of the policy ``units.yaml``::

    nova-perfvm flavor generate -f heat --policy units.yaml > units.heat.yaml
"""

import pathlib

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

DIRECTORY = pathlib.Path(__file__).parent
POLICIES = {
    "built-in": loader.load(),
    "units": loader.load(str(DIRECTORY / "units.yaml")),
}


def files(suffix):
    """Yield a policy's flavors, and the text that is expected of them."""
    for name, policy in POLICIES.items():
        text = (DIRECTORY / f"{name}.{suffix}").read_text(encoding="utf-8")
        yield generate_flavors(policy), text


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
