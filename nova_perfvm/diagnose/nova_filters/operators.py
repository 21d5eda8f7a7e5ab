# SPDX-License-Identifier: Apache-2.0
"""Operators in the values of extra specs: nova.scheduler.filters.extra_specs_ops."""

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
    """Return whether a value satisfies an extra spec.

    If a value should be a number and is not, Nova's filter raises, and the request
    fails; here the value does not match.
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
