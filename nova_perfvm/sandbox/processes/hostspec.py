# SPDX-License-Identifier: Apache-2.0
"""Which compute hosts the sandbox pretends: ``3xdedicated:2x20,1xshared:2x20``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from nova_perfvm.exceptions import ShapeError
from nova_perfvm.generate.hosts import MODES
from nova_perfvm.policy import HostShape
from nova_perfvm.sandbox.processes.errors import SandboxError

if TYPE_CHECKING:
    from nova_perfvm.generate.hosts import Mode

DEFAULT_HOSTS: Final = "2xdedicated:2x20,1xshared:2x20"
MAX_HOSTS: Final = 200

_GROUP = re.compile(r"(?:(\d{1,4})x)?([a-z]+):([^@]+)(?:@(.+))?")
_EXAMPLE: Final = "such as 3xdedicated:2x20,2xshared:2x20,1xdedicated:2x20x2"


@dataclass(frozen=True, slots=True)
class PretendedHost:
    """One compute host.

    :ivar name: its mode and a number: ``dedicated1``
    :ivar class_name: the pinned class that it is for; None for the policy's only one
    """

    name: str
    mode: Mode
    shape: HostShape
    class_name: str | None = None


def parse_hosts(text: str) -> tuple[PretendedHost, ...]:
    """Read ``[COUNTx]MODE:SHAPE[@CLASS],...``.

    :raises SandboxError: naming the group that is wrong, and what was expected
    """
    hosts: list[PretendedHost] = []
    numbers: dict[str, int] = {}
    for group in text.split(","):
        count, mode, shape, class_name = _parse_group(group.strip())
        for _ in range(count):
            numbers[mode] = numbers.get(mode, 0) + 1
            name = f"{mode}{numbers[mode]}"
            hosts.append(PretendedHost(name, mode, shape, class_name))
        if len(hosts) > MAX_HOSTS:
            raise SandboxError(f"--hosts {text!r}: expected at most {MAX_HOSTS} hosts")
    return tuple(hosts)


def _parse_group(group: str) -> tuple[int, Mode, HostShape, str | None]:
    where = f"--hosts: {group!r}"
    match = _GROUP.fullmatch(group)
    if match is None:
        raise SandboxError(
            f"{where}: expected [COUNTx]MODE:SHAPE[@CLASS], several joined by "
            f"commas, {_EXAMPLE}"
        )
    count, mode, shape, class_name = match.groups()
    if mode not in MODES:
        raise SandboxError(f"{where}: mode {mode!r}: expected {', '.join(MODES)}")
    if count is not None and not int(count):
        raise SandboxError(f"{where}: expected 1 host or more, or leave the group out")
    try:
        parsed = HostShape.parse(shape)
    except ShapeError as exc:
        raise SandboxError(f"{where}: {exc}") from exc
    return int(count or 1), cast("Mode", mode), parsed, class_name
