# SPDX-License-Identifier: Apache-2.0
"""The policy file: text in, a valid policy or all of its mistakes out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, dump_document, parse_document
from nova_perfvm.policy import Policy
from nova_perfvm.policy.default import DEFAULT_DOCUMENT, DEFAULT_TEXT

KIND: Final = "policy"
# The name under which the built-in policy appears in messages.
BUILT_IN: Final = "built-in policy"
# What names it in place of a file; a file of that name is ./builtin.
BUILT_IN_NAME: Final = "builtin"


def load(path: str | Path | None = None) -> Policy:
    """Read a policy file, or give the built-in policy without one.

    :param path: of the file; ``builtin`` or None for the built-in policy
    :raises DocumentError: with every mistake of the file, or that it cannot be
        read; there is no fall-back
    """
    text = DEFAULT_TEXT
    if path is not None and path != BUILT_IN_NAME:
        text = textfile.read(path, KINDS[KIND].most_bytes)
    return parse(text, title(path))


def title(path: str | Path | None) -> str:
    """Return what a policy is called in messages; see :func:`load`."""
    return BUILT_IN if path in {None, BUILT_IN_NAME} else str(path)


def parse(text: str, source: str = "policy") -> Policy:
    """Return the policy that a YAML text declares.

    A key that is missing at the top has the built-in policy's value; one that is
    missing in a class has the value that asks for nothing (``classes`` is taken as
    a whole, so that a class can be left out).

    :param source: the text's name in messages
    :raises DocumentError: with every mistake of the text, each with its line
    """
    return parse_document(KIND, Policy, text, source, defaults=DEFAULT_DOCUMENT)


def dump(policy: Policy) -> str:
    """Return a policy as YAML that :func:`parse` reads back to an equal one."""
    return dump_document(KIND, policy, whole=True)
