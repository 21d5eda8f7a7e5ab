# SPDX-License-Identifier: Apache-2.0
"""Text in, the cells of every host or all of the mistakes out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nova_perfvm import textfile
from nova_perfvm.exceptions import FileMistakesError, KeyPath, UnreadableFileError
from nova_perfvm.facts.snapshot import HostCell
from nova_perfvm.generate.inventory.build import Builder
from nova_perfvm.generate.inventory.schema import SCHEMA
from nova_perfvm.policy import Policy
from nova_perfvm.policy.schema import form_problems
from nova_perfvm.policy.source import Source


class InventoryError(FileMistakesError):
    """An inventory file that cannot be used; ``problems`` holds its mistakes."""

    title = "{source} is no inventory that can be used:"


def load(path: str | Path, policy: Policy) -> dict[str, tuple[HostCell, ...]]:
    """Read an inventory file; see :func:`parse`.

    :raises InventoryError: when it cannot be read, too
    """
    try:
        text = textfile.read(path)
    except UnreadableFileError as exc:
        raise InventoryError(str(path), [exc.as_problem()]) from None
    return parse(text, policy, str(path))


def parse(
    text: str, policy: Policy, source: str = "inventory"
) -> dict[str, tuple[HostCell, ...]]:
    """Return the cells of each host that a text, YAML or JSON, describes.

    Memory that it does not tell is 0.

    :param policy: says whether VMs own cores or threads, where a host is
        described by its shape
    :param source: the text's name in messages
    :raises InventoryError: with every mistake of the text, each with its line
    """
    parsed = Source(text)
    if parsed.problems:
        raise InventoryError(source, parsed.problems)
    found = form_problems(SCHEMA, parsed.data)
    builder = Builder(policy)
    for name, host in _hosts(parsed.data).items():
        faults = [problem.path[2:] for problem in found if name in problem.path[1:2]]
        sound = _sound(host, faults)
        if sound is not None:
            builder.add(name, sound)
    found += builder.problems
    if found:
        raise InventoryError(source, parsed.in_order(dict.fromkeys(found)))
    return builder.cells


def _sound(host: Any, faults: Iterable[KeyPath]) -> dict[str, Any] | None:
    """Leave out what is not of the right form; None if nothing can be judged."""
    found: dict[str, Any] = copy.deepcopy(host)
    for fault in faults:
        if fault[:1] != ("cells",) or len(fault) < 3:
            return None
        _, index, key, *_ = fault
        found["cells"][int(index)].pop(key, None)
    return found


def _hosts(data: Any) -> Mapping[str, Any]:
    hosts = data.get("hosts") if isinstance(data, dict) else None
    return hosts if isinstance(hosts, dict) else {}
