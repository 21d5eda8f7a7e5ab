# SPDX-License-Identifier: Apache-2.0
"""Keys of a policy given one by one, such as on a command line."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.documents.yaml_lines import YAMLText


def override(
    document: Mapping[str, Any], assignments: Iterable[str]
) -> tuple[dict[str, Any], list[Mistake]]:
    """Change keys of a policy's document.

    What the document then says is not checked here.

    :param document: every key at the top; it is not changed
    :param assignments: ``KEY=VALUE`` each: the key as a path from the top, with
        dots, the value in YAML
    :returns: the changed document, and what is wrong with the assignments
    """
    changed = copy.deepcopy(dict(document))
    mistakes = [m for text in assignments for m in _assign(changed, text)]
    return changed, mistakes


def _assign(document: dict[str, Any], assignment: str) -> list[Mistake]:
    key, equals, text = assignment.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        message = f"found {assignment!r}, expected KEY=VALUE, such as vcpus=4"
        return [Mistake((), message)]
    value = YAMLText(text)
    if value.mistakes:
        return [
            Mistake((*path, *mistake.path), f"found {text!r}: {mistake.message}")
            for mistake in value.mistakes
        ]
    target: Any = document
    for depth, part in enumerate(path[:-1]):
        if path[0] == "classes" and depth == 1 and part not in target:
            names = ", ".join(target) or "none"
            return [Mistake(path, f"no such class: the policy declares {names}")]
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            above = ".".join(path[: depth + 1])
            return [Mistake(path, f"{above} is no mapping: give it as a whole")]
    target[path[-1]] = value.data
    return []
