# SPDX-License-Identifier: Apache-2.0
"""Internal functions, methods and classes of Nova on which this package depends.

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
# Length of the hashes in the file, in hex digits.
_LENGTH: Final = 16


class Internal(NamedTuple):
    """A function, method or class of Nova.

    :ivar why: how this package uses the part, or what it copies
    :ivar hashes: hash of the part's source by major release of Nova
    """

    why: str
    hashes: Mapping[int, str]


@functools.cache
def internals() -> Mapping[str, Internal]:
    """Return the parts of Nova by their dotted names."""
    text = resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    return {name: Internal(**found) for name, found in yaml.safe_load(text).items()}


def is_known(name: str, found: Any = None) -> bool:
    """Return whether the source of a part of Nova is one that the tests ran with.

    :param name: a name of :func:`internals`
    :param found: the object to look at; None for the installed Nova's
    """
    return source_hash(found or _named(name)) in internals()[name].hashes.values()


def unknown() -> Iterator[str]:
    """Yield the names of parts that the installed Nova lacks or has changed."""
    return (name for name in internals() if not is_known(name))


def source_hash(part: Any) -> str | None:
    """Return the hash of an object's source, comments and layout aside.

    None if the source cannot be found.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
    except (OSError, TypeError, SyntaxError):
        return None
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:_LENGTH]


def _named(name: str) -> Any:
    """Return the installed Nova's object of a dotted name; None without one."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None
