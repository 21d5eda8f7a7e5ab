# SPDX-License-Identifier: Apache-2.0
"""The compute hosts that are pretended: ``3xdedicated:2x20,1xshared:2x20``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from nova_perfvm.exceptions import ShapeError
from nova_perfvm.generate.hosts import MODES, HostConfig, HostRequest, Mode, generate
from nova_perfvm.policy import HostShape, Policy
from tests.hypervisor.topology import pretended_topology
from tests.processes.errors import SandboxError

DEFAULT_HOSTS: Final = "2xdedicated:2x20,1xshared:2x20"
MEMORY_GB: Final = 500

_GROUP = re.compile(r"(?:([1-9]\d{0,3})x)?([a-z]+):([^@]+)(?:@(.+))?")
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


def parse_hosts(text: str, option: str = "--hosts") -> tuple[PretendedHost, ...]:
    """Read ``[COUNTx]MODE:SHAPE[@CLASS],...``.

    :param option: what the text was given by
    :raises SandboxError: naming the group that is wrong, and what was expected
    """
    hosts: list[PretendedHost] = []
    numbers: dict[str, int] = {}
    for group in text.split(","):
        count, mode, shape, class_name = _parse_group(group.strip(), option)
        for _ in range(count):
            numbers[mode] = numbers.get(mode, 0) + 1
            name = f"{mode}{numbers[mode]}"
            hosts.append(PretendedHost(name, mode, shape, class_name))
    return tuple(hosts)


def more_hosts(hosts: str, added: str) -> str:
    """Return the text of all hosts, those that are added behind the others.

    :param hosts: of those that there are
    :param added: in the same grammar, or a number: so many like the first one
    :raises SandboxError: as :func:`parse_hosts` does
    """
    if added.isdecimal():
        first = hosts.partition(",")[0].strip()
        added = f"{added}x{re.sub('^[0-9]+x', '', first)}"
    parse_hosts(added, "--add")
    return f"{hosts},{added}"


def _parse_group(group: str, option: str) -> tuple[int, Mode, HostShape, str | None]:
    where = f"{option}: {group!r}"
    match = _GROUP.fullmatch(group)
    if match is None:
        raise SandboxError(
            f"{where}: expected [COUNTx]MODE:SHAPE[@CLASS], several joined by "
            f"commas, {_EXAMPLE}"
        )
    count, mode, shape, class_name = match.groups()
    if mode not in MODES:
        raise SandboxError(f"{where}: mode {mode!r}: expected {', '.join(MODES)}")
    try:
        parsed = HostShape.parse(shape)
    except ShapeError as exc:
        raise SandboxError(f"{where}: {exc}") from exc
    return int(count or 1), cast("Mode", mode), parsed, class_name


def host_configs(
    hosts: Sequence[PretendedHost], policy: Policy
) -> dict[str, HostConfig]:
    """Return for each host what ``nova-perfvm host config`` would.

    :raises PerfVMError: when the policy or the shape forbids a host, or it has to
        name its class, or names a wrong one
    """
    return {
        host.name: generate(
            HostRequest(
                policy,
                pretended_topology(host.shape, MEMORY_GB),
                host.mode,
                class_name=host.class_name,
            )
        )
        for host in hosts
    }
