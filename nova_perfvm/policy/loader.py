# SPDX-License-Identifier: Apache-2.0
"""The policy file: text in, a valid policy or all of its mistakes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from nova_perfvm import filekinds, textfile
from nova_perfvm.exceptions import (
    KeyPath,
    PolicyError,
    Problem,
    UnreadableFileError,
    UnreadablePolicyError,
)
from nova_perfvm.policy import Policy, problems
from nova_perfvm.policy.default import DEFAULT_DOCUMENT
from nova_perfvm.policy.keys import read
from nova_perfvm.policy.override import override
from nova_perfvm.policy.schema import SCHEMA, form_problems
from nova_perfvm.policy.sizes import size_problems, with_sizes
from nova_perfvm.policy.source import Source

__all__ = ["BUILT_IN", "BUILT_IN_NAME", "SCHEMA", "dump", "load", "parse", "title"]

# Keys of a class that mean nothing without its vcpus.
_JUDGED_BY_VCPUS = {("numa_nodes",), ("former_vcpus",)}
# The name under which the built-in policy appears in messages.
BUILT_IN = "built-in policy"
# What names it in place of a file; a file of that name is ./builtin.
BUILT_IN_NAME: Final = "builtin"
# Some hundreds of classes, and read within seconds.
_MOST_BYTES: Final = 256 * 1024


def load(path: str | Path | None = None, overrides: Sequence[str] = ()) -> Policy:
    """Read a policy file, or give the built-in policy without one.

    :param path: of the file; ``builtin`` or None for the built-in policy
    :param overrides: ``KEY=VALUE`` each, instead of what the file says; see
        :func:`nova_perfvm.policy.override.override`
    :raises PolicyError: with every mistake of the file, or that it cannot be
        read; there is no fall-back
    """
    source = title(path)
    path = None if path == BUILT_IN_NAME else path
    text = None if path is None else _read(path)
    policy = _build(DEFAULT_DOCUMENT) if text is None else parse(text, source)
    if not overrides:
        return policy
    data = DEFAULT_DOCUMENT | ({} if text is None else Source(text).data)
    changed, found = override(data, overrides)
    overridden, rest = (None, found) if found else _check(changed)
    if rest or overridden is None:
        raise PolicyError(f"{source}, with the keys given", rest)
    return overridden


def title(path: str | Path | None) -> str:
    """Return what a policy is called in messages; see :func:`load`."""
    return BUILT_IN if path in {None, BUILT_IN_NAME} else str(path)


def _read(path: str | Path) -> str:
    if not str(path):
        # Path would take it for the current directory.
        message = "an empty path: name a file, or leave out the option that names it"
        raise UnreadablePolicyError(repr(path), [Problem((), message)])
    try:
        return textfile.read(path, _MOST_BYTES)
    except UnreadableFileError as exc:
        message = "no such file: create it, or leave out the option that names it"
        problem = Problem((), message) if exc.absent else exc.as_problem()
        raise UnreadablePolicyError(str(path), [problem]) from None


def parse(text: str, source: str = "policy") -> Policy:
    """Return the policy that a YAML text declares.

    :param source: the text's name in messages
    :raises PolicyError: with every mistake of the text, each with its line
    """
    other = filekinds.other(text, filekinds.POLICY)
    if other:
        raise PolicyError.of_another_kind(source, other)
    parsed = Source(text)
    if parsed.problems:
        raise PolicyError(source, parsed.problems)
    if not isinstance(parsed.data, dict):
        message = "expected a mapping with at least schema_version"
        raise PolicyError(source, [Problem((), message)])
    policy, found = _check(parsed.data)
    if found or policy is None:
        raise PolicyError(source, map(_explained, parsed.in_order(found)))
    return policy


def dump(policy: Policy) -> str:
    """Return a policy as YAML that :func:`parse` reads back to an equal one."""
    text: str = yaml.safe_dump(policy.as_document(), sort_keys=False, width=88)
    return text


def _check(document: dict[str, Any]) -> tuple[Policy | None, list[Problem]]:
    """Build what can be built, and list the mistakes of form and of meaning.

    What the schema refuses is left out, so that the rest can still be judged;
    a mistake of meaning that rests on something left out is not reported.
    """
    found = form_problems(SCHEMA, document)
    rest = _unshared(document)
    for problem in found:
        _leave_out(rest, problem.path)
    if "classes" in document and not rest.get("classes"):
        return None, found
    faulty = {problem.path for problem in found}
    dropped = list(size_problems(rest, faulty))
    for problem in dropped:
        _leave_out(rest, problem.path)
    found += dropped
    policy = _build(rest)
    found.extend(
        problem for problem in problems(policy) if not _rests_on(problem.path, faulty)
    )
    return policy, found


def _build(document: dict[str, Any]) -> Policy:
    """Return the policy of a document that fulfils the schema.

    A key that is missing at the top has the built-in policy's value; one that
    is missing in a class has the value that asks for nothing (``classes`` is
    taken as a whole, so that a class can be left out).
    """
    full = DEFAULT_DOCUMENT | document
    classes = {name: with_sizes(keys) for name, keys in full["classes"].items()}
    policy: Policy = read(Policy, full | {"classes": classes})
    return policy


def _unshared(value: Any) -> Any:
    """Copy mappings and lists so that an alias is no longer one with its anchor."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def _explained(problem: Problem) -> Problem:
    """Say of a problem in what is not in the file where it comes from."""
    if problem.line is not None or len(problem.path) <= 1:
        return problem
    why = f" (the file has no {problem.path[0]}: this is the built-in value)"
    return replace(problem, message=problem.message + why)


def _leave_out(document: dict[str, Any], path: KeyPath) -> None:
    """Remove what a path names; a list goes as a whole, as do a class's flavors."""
    if "flavors" in path:
        path = path[: path.index("flavors") + 1]
    target: Any = document
    for key in path[:-1]:
        if not isinstance(target, dict) or key not in target:
            return
        if isinstance(target[key], list):
            del target[key]
            return
        target = target[key]
    if path and isinstance(target, dict):
        target.pop(path[-1], None)


def _rests_on(path: KeyPath, faulty: set[KeyPath]) -> bool:
    """Return whether a problem is about something that was left out.

    That is the value itself, or anything above it; the vcpus of the class, for
    keys that are judged by them.  Whether there is a default class rests on
    every class and on each ``default``.
    """
    if any(path[:length] in faulty for length in range(len(path) + 1)):
        return True
    if path[-1:] in _JUDGED_BY_VCPUS and (*path[:-1], "vcpus") in faulty:
        return True
    return path == ("classes",) and any(
        left_out[0] == "classes"
        and (len(left_out) <= len(("classes", "name")) or left_out[-1] == "default")
        for left_out in faulty
        if left_out
    )
