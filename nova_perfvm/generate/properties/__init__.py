# SPDX-License-Identifier: Apache-2.0
"""What flavors and images of a class carry: one generator for each concern.

A generator is a function ``(policy, vm_class) -> Properties``.  The four of
:mod:`nova_perfvm.generate.properties.built_in` are entry points in the namespace
``nova_perfvm.properties``, and so is any that an operator's package adds; see
:mod:`nova_perfvm.generate.properties.extensions`.
"""

from nova_perfvm.generate.properties.built_in import BUILT_IN
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
