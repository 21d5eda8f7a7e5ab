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

"""What can go wrong between generators of properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm.exceptions import PerfVMError

if TYPE_CHECKING:
    from collections.abc import Mapping

_REMEDY = "mend or uninstall the package that it comes from"


class PropertiesError(PerfVMError):
    """A generator that cannot be used; ``generator`` names it."""

    def __init__(self, generator: str, fault: str, remedy: str = _REMEDY) -> None:
        """Say whose fault it is, and what to do."""
        self.generator = generator
        self.fault = fault
        super().__init__(f"properties extension {generator} {fault}: {remedy}")


class PropertiesConflictError(PerfVMError):
    """One key with different values; ``values`` has them by who gave them."""

    def __init__(self, kind: str, key: str, values: Mapping[str, str]) -> None:
        """Name the key and both sides."""
        self.key = key
        self.values = dict(values)
        sides = " and ".join(f"{value!r} from {name}" for name, value in values.items())
        super().__init__(
            f"{kind} {key} has contradicting values: {sides}; one of them must go"
        )
