# SPDX-License-Identifier: Apache-2.0
"""Keys of a policy given one by one, such as on a command line."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from nova_perfvm.exceptions import Problem
from nova_perfvm.policy.source import Source

_CLASSES = "classes"


def override(
    document: Mapping[str, Any], assignments: Iterable[str]
) -> tuple[dict[str, Any], list[Problem]]:
    """Change keys of a policy's document.

    What the document then says is not checked here.

    :param document: every key at the top; it is not changed
    :param assignments: ``KEY=VALUE`` each: the key as a path from the top, with
        dots, the value in YAML
    :returns: the changed document, and what is wrong with the assignments
    """
    changed = copy.deepcopy(dict(document))
    problems: list[Problem] = []
    for assignment in assignments:
        problems.extend(_assign(changed, assignment))
    return changed, problems


def _assign(document: dict[str, Any], assignment: str) -> list[Problem]:
    key, equals, text = assignment.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        message = f"found {assignment!r}, expected KEY=VALUE, such as vcpus=4"
        return [Problem((), message)]
    value = Source(text)
    if value.problems:
        return [
            Problem((*path, *problem.path), f"found {text!r}: {problem.message}")
            for problem in value.problems
        ]
    declared = document.get(_CLASSES)
    if (
        path[0] == _CLASSES
        and len(path) > 2
        and isinstance(declared, dict)
        and path[1] not in declared
    ):
        names = ", ".join(declared) or "none"
        return [Problem(path, f"no such class: the policy declares {names}")]
    target: Any = document
    for depth, part in enumerate(path[:-1]):
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            above = ".".join(path[: depth + 1])
            return [Problem(path, f"{above} is no mapping: give it as a whole")]
    target[path[-1]] = value.data
    return []
