# SPDX-License-Identifier: Apache-2.0
"""Extra specs of flavors and properties of images: one generator for each concern.

A generator is a function ``(policy, vm_class) -> Properties``, registered as an entry
point in the namespace ``nova_perfvm.properties``: the four of
:mod:`nova_perfvm.generate.properties.built_in`, and those of an operator's packages,
which :mod:`nova_perfvm.generate.properties.extensions` loads.
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
