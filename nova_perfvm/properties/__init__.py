# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Extra specs and image properties, one generator per concern.

A generator is a function ``(policy, vm_class) -> Properties``.  The four of
this package are entry points in the namespace ``nova_perfvm.properties``, and
so is any that an operator's package adds; see
:mod:`nova_perfvm.properties.extensions`.
"""

from typing import Final

from nova_perfvm.properties import cpu, disk, memory, network
from nova_perfvm.properties.combine import Generator, Properties, combine, merge
from nova_perfvm.properties.errors import PropertiesConflictError, PropertiesError

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
