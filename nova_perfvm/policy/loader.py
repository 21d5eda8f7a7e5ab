# SPDX-License-Identifier: Apache-2.0
"""Load the policy file: return a valid policy, or raise all mistakes of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, dump_document, parse_document
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.policy import Policy
from nova_perfvm.policy.default import DEFAULT_DOCUMENT, DEFAULT_TEXT

Check = Callable[[Policy], Iterable[Mistake]]
KIND: Final = "policy"
# The name under which the built-in policy appears in messages.
BUILT_IN: Final = "built-in policy"
# The path that stands for the built-in policy; ./builtin names a file.
BUILT_IN_NAME: Final = "builtin"


def load(path: str | Path | None = None, check: Check | None = None) -> Policy:
    """Return the policy of a file, or the built-in policy.

    :param path: path of the file; ``builtin`` or None for the built-in policy
    :param check: lists further mistakes of a policy that is valid by itself
    :raises DocumentError: the file cannot be read, or has mistakes; the error lists
        all of them
    """
    text = DEFAULT_TEXT
    if path is not None and path != BUILT_IN_NAME:
        text = textfile.read(path, KINDS[KIND].most_bytes)
    return parse(text, title(path), check)


def title(path: str | Path | None) -> str:
    """Return the name of a policy in messages; see :func:`load`."""
    return BUILT_IN if path in {None, BUILT_IN_NAME} else str(path)


def parse(text: str, source: str = "policy", check: Check | None = None) -> Policy:
    """Return the policy that a YAML text declares.

    A missing top-level key takes its value from the built-in policy.  A missing key of
    a class takes the default of :class:`~nova_perfvm.policy.classes.VMClass`, whatever
    the built-in class of that name has.

    :param source: the text's name in messages
    :param check: see :func:`load`
    :raises DocumentError: with every mistake of the text, each with its line
    """
    return parse_document(
        KIND, Policy, text, source, defaults=DEFAULT_DOCUMENT, check=check
    )


def dump(policy: Policy) -> str:
    """Return a policy as YAML that :func:`parse` reads back to an equal one."""
    return dump_document(KIND, policy, whole=True)
