# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between generators of properties."""

from __future__ import annotations

from collections.abc import Mapping

from nova_perfvm.exceptions import PerfVMError

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
