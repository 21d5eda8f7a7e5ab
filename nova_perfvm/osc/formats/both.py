# SPDX-License-Identifier: Apache-2.0
"""A cell that a table and JSON show differently."""

from __future__ import annotations

from typing import Any

from cliff.columns import FormattableColumn


class Both(FormattableColumn[Any]):
    """A cell with a text for tables and a value for JSON."""

    def __init__(self, text: str, value: Any) -> None:
        super().__init__((text, value))

    def human_readable(self) -> str:
        text: str = self._value[0]
        return text

    def machine_readable(self) -> Any:
        return self._value[1]
