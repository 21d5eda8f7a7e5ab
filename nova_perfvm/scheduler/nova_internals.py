# SPDX-License-Identifier: Apache-2.0
"""Parts of Nova that are no API of Nova's, and that this package rests on.

``nova_internals.yaml`` lists each part, the reason, and the hashes of its source in the
releases that the tests ran with.
"""

import ast
import functools
import hashlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final, NamedTuple

import yaml

_FILE: Final = "nova_internals.yaml"
# Characters of the hashes in the file.
_LENGTH: Final = 16


class Internal(NamedTuple):
    """A function, method or class of Nova.

    :ivar why: what this package does with it, or copies of it
    :ivar hashes: of its source, by the major release of Nova
    """

    why: str
    hashes: Mapping[int, str]


@functools.cache
def internals() -> Mapping[str, Internal]:
    """Return the parts of Nova by their dotted names."""
    text = resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    return {name: Internal(**found) for name, found in yaml.safe_load(text).items()}


def is_known(name: str, found: Any = None) -> bool:
    """Return whether a part of Nova has a source that the tests ran with.

    :param name: one of :func:`internals`
    :param found: what stands in its place; None for what the installed Nova has
    """
    return source_hash(found or _named(name)) in internals()[name].hashes.values()


def unknown() -> Iterator[str]:
    """Yield the names of parts that the installed Nova lacks, or has otherwise."""
    return (name for name in internals() if not is_known(name))


def source_hash(part: Any) -> str | None:
    """Return the hash of a source without comments and layout; None without source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
    except (OSError, TypeError, SyntaxError):
        return None
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:_LENGTH]


def _named(name: str) -> Any:
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None
