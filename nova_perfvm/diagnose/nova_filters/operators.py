# SPDX-License-Identifier: Apache-2.0
"""The operators in values of extra specs: nova.scheduler.filters.extra_specs_ops."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

_NUMBERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_TEXTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": operator.contains,
}


def match(value: str, wanted: str) -> bool:
    """Return whether a value is as an extra spec wants it.

    Nova's filter fails, and with it the request, where a number is none.
    """
    name, *words = wanted.split() or [""]
    if name == "<or>":
        return value in words[::2]
    if name == "<all-in>":
        return bool(words) and all(word in value for word in words)
    if name in _TEXTS:
        return bool(words) and _TEXTS[name](value, words[0])
    if name not in _NUMBERS:
        return value == wanted
    try:
        return bool(words) and _NUMBERS[name](float(value), float(words[0]))
    except ValueError:
        return False
