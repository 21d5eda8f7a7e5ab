# SPDX-License-Identifier: Apache-2.0
"""The state of a target before the first step: kernel, CPU, tools, files, clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nova_perfvm.documents.document import as_document
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench import connection, medium
from nova_perfvm.measure.bench.connection import Clock, TargetError
from nova_perfvm.measure.bench.medium import Medium
from nova_perfvm.measure.bench.scenario import Scenario, Target
from nova_perfvm.measure.bench.tools import cyclictest, iperf3, sysbench
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected

_LOOK_S: Final = 60
_COLLECT_S: Final = 120
# Bytes: a host has hundreds of VMs, a guest one kernel with hundreds of CPUs.
_MOST_COLLECTED: Final = {"host": 64 * 2**20, "guest": 16 * 2**20}
# Seconds between the two looks at counters.
_INTERVAL_S: Final = 1
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
# cyclictest has no option for the version alone.
_OPTIONS: Final = {cyclictest.NAME: "--help"}
# Programs of GNU that the barrier runs.
_BARRIER: Final = ("timeout", "date", "sleep")
# Each argument is a command that tells a version; its first word is the tool.
_SCRIPT: Final = """\
say() { printf '%s\\t%s\\n' "$1" "$2"; }
say hostname "$(uname -n)"
say kernel "$(uname -r)"
model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
arm=$(sed -n -e 's/^CPU implementer[[:space:]]*: //p' \
-e 's/^CPU part[[:space:]]*: //p' /proc/cpuinfo | head -n 2 | tr '\\n' ' ')
say cpu_model "${model:-${arm% }}"
say governor "$(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor \
2> /dev/null | sort -u | tr '\\n' ' ')"
say caches "$(lscpu -B -C=LEVEL,ALL-SIZE 2> /dev/null | tr '\n' ' ')"
say memory_kb "$(sed -n 's/^MemTotal: *//p' /proc/meminfo)"
for line in "$@"; do
  if command -v "${line%% *}" > /dev/null; then
    say "${line%% *}" "$(sh -c "$line" 2>&1 | head -n 1)"
  fi
done
"""


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a target, as recorded.

    :ivar last_level_cache_bytes: sum of the target's last-level caches; 0 if unknown
    :ivar memory_bytes: memory of the target; 0 if unknown
    :ivar versions: {tool: version}
    :ivar collected: document of ``host collect`` or ``guest collect`` on the target
    :ivar not_collected: why `collected` is None
    :ivar medium: medium of fio's directory; None without a directory
    """

    hostname: str
    kernel: str | None
    cpu_model: str | None
    governor: str | None
    last_level_cache_bytes: int
    memory_bytes: int
    versions: Mapping[str, str]
    clock: Clock
    collected: dict[str, Any] | None = None
    not_collected: str = ""
    medium: Medium | None = None


async def look(target: Target, scenario: Scenario) -> Look:
    """Look at a target.

    :raises TargetError: when the target does not answer, lacks tools (all are named),
        cannot bind to its node, or cannot write to fio's directory
    """
    tools = _tools(target, scenario)
    needed = [*tools, *_BARRIER, *(["numactl"] if target.node is not None else [])]
    commands = [f"{name} {_OPTIONS.get(name, '--version')}" for name in needed]
    script = ["sh", "-c", _SCRIPT, "sh", *commands]
    text = await connection.run(target, script, _LOOK_S)
    facts = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    if absent := [name for name in needed if name not in facts]:
        raise TargetError(f"not installed: {', '.join(absent)}")
    if target.node is not None:
        await _bind(target)
    # A target that only serves iperf3 measures no disk.
    disk = None if _serves(target, scenario) else scenario.tools.fio
    directory = disk and (target.fio_directory or disk.directory)
    seen = Look(
        hostname=facts.get("hostname", ""),
        kernel=facts.get("kernel") or None,
        cpu_model=facts.get("cpu_model") or None,
        governor=facts.get("governor", "").strip() or None,
        last_level_cache_bytes=last_level(facts.get("caches", "")),
        memory_bytes=int((facts.get("memory_kb") or "0").split()[0]) * 1024,
        versions={name: _version(facts[name]) for name in tools},
        clock=await connection.clock(target),
        medium=await medium.look(target, directory) if directory else None,
    )
    try:
        found = await collect(target, _INTERVAL_S)
    except PerfVMError as exc:
        return replace(seen, not_collected=str(exc))
    return replace(seen, collected=as_document(target.kind, found, whole=True))


async def _bind(target: Target) -> None:
    """Try whether commands can be bound to a target's NUMA node.

    A cpuset, or a container, may keep it off a node that is there.
    """
    try:
        await connection.run(target, ["true"], _LOOK_S, bound=True)
    except TargetError as exc:
        reason = f"node {target.node}: numactl cannot bind to it: {exc.reason}"
        raise TargetError(reason, exc.stderr) from None


def _tools(target: Target, scenario: Scenario) -> list[str]:
    """List the tools that a target needs, each once."""
    if _serves(target, scenario):
        return [iperf3.NAME]
    names = {tool.program for tool in scenario.tools.used().values()}
    return sorted(names | ({sysbench.NAME} if scenario.loads else set()))


def _serves(target: Target, scenario: Scenario) -> bool:
    """Return whether others measure the network against a target."""
    network = scenario.tools.iperf3
    return network is not None and network.server == target.name


def last_level(text: str) -> int:
    """Return the bytes of all last-level caches in lscpu's two columns; 0 without."""
    numbers = [int(word) for word in text.split() if word.isdecimal()]
    # Instructions have caches of their own on the first level.
    levels = zip(numbers[::2], numbers[1::2], strict=False)
    return max(levels, default=(0, 0))[1]


async def collect(target: Target, interval_s: float) -> Collected:
    """Return what ``host collect`` or ``guest collect`` finds on a target.

    :param interval_s: seconds between the two looks at counters
    :raises PerfVMError: when the collector fails there, or prints something else
    """
    command = ["python3", "-", target.kind, "--interval", str(interval_s)]
    script = reading.script().encode()
    most = _MOST_COLLECTED[target.kind]
    text = await connection.run(target, command, _COLLECT_S, script, most_bytes=most)
    return reading.loads(text, target.name, target.kind)


def _version(text: str) -> str:
    match = _VERSION.search(text)
    return match[0] if match else text or "unknown"
