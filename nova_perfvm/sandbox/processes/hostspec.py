# SPDX-License-Identifier: Apache-2.0
"""The specification of fake compute hosts: ``3xdedicated:2x20,1xshared:2x20``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from nova_perfvm.exceptions import ShapeError
from nova_perfvm.generate.hosts import MODES, HostConfig, HostRequest, Mode, generate
from nova_perfvm.policy import HostShape, Policy
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.topology import pretended_topology

DEFAULT_HOSTS: Final = "2xdedicated:2x20,1xshared:2x20"
MEMORY_GB: Final = 500

_GROUP = re.compile(r"(?:([1-9]\d{0,3})x)?([a-z]+):([^@]+)(?:@(.+))?")
_EXAMPLE: Final = "such as 3xdedicated:2x20,2xshared:2x20,1xdedicated:2x20x2"


@dataclass(frozen=True, slots=True)
class PretendedHost:
    """A fake compute host.

    :ivar name: the mode and a number: ``dedicated1``
    :ivar class_name: the host's pinned class; None for the policy's only one
    """

    name: str
    mode: Mode
    shape: HostShape
    class_name: str | None = None


def parse_hosts(text: str, option: str = "--hosts") -> tuple[PretendedHost, ...]:
    """Read ``[COUNTx]MODE:SHAPE[@CLASS],...``.

    :param option: the text's option, for messages
    :raises SandboxError: names the wrong group, and the expected format
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
    """Return the specification of present and added hosts together.

    :param hosts: specification of the present hosts
    :param added: specification of the new hosts, or a number of hosts like the first
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
    """Return the configurations of ``nova-perfvm host config``, by the host's name.

    :raises PerfVMError: when the policy or the shape forbids a host, or a host lacks a
        class or names a wrong one
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
