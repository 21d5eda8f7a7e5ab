# SPDX-License-Identifier: Apache-2.0
"""Extra specs and image properties, one generator per concern.

A generator is a function ``(policy, vm_class) -> Properties``.  The four of
this package are entry points in the namespace ``nova_perfvm.properties``, and
so is any that an operator's package adds; see
:mod:`nova_perfvm.generate.properties.extensions`.
"""

from typing import Final

from nova_perfvm.generate.properties import cpu, disk, memory, network
from nova_perfvm.generate.properties.combine import (
    Generator,
    Properties,
    PropertiesConflictError,
    PropertiesError,
    combine,
    merge,
)

__all__ = [
    "BUILT_IN",
    "Generator",
    "Properties",
    "PropertiesConflictError",
    "PropertiesError",
    "combine",
    "merge",
]

# By their entry points' names.
BUILT_IN: Final[dict[str, Generator]] = {
    "cpu": cpu.generate,
    "disk": disk.generate,
    "memory": memory.generate,
    "network": network.generate,
}
