# SPDX-License-Identifier: Apache-2.0
"""One line of an oslo.config file, with why it is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """One option.

    :ivar section: the section of the file, such as ``compute``
    :ivar values: one line each; none: the option stays unset on purpose
    :ivar why: one or two sentences for the comment above it
    """

    section: str
    option: str
    values: tuple[str, ...]
    why: str
