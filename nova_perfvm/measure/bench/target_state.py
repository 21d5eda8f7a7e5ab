# SPDX-License-Identifier: Apache-2.0
"""What a target is, seen before anything is measured on it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError, PerfVMError
from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.connection import Clock
from nova_perfvm.measure.bench.scenario import Scenario, Target
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, sysbench
from nova_perfvm.measure.collect import collector, reading

_LOOK_S: Final = 60
_COLLECT_S: Final = 120
# Between the two looks at counters.
_INTERVAL_S: Final = 1
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
_VERSIONS: Final = {
    module.NAME: module.VERSION for module in (sysbench, iperf3, fio, cyclictest)
}
_MISSING: Final = "-"
# Each argument is a command that tells a version; its first word is the tool.
_SCRIPT: Final = f"""\
say() {{ printf '%s\\t%s\\n' "$1" "$2"; }}
say hostname "$(uname -n)"
say kernel "$(uname -r)"
say cpu_model "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
say governor "$(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor \
2> /dev/null | sort -u | tr '\\n' ' ')"
for list in online has_cpu has_memory; do
  say "$list" "$(cat /sys/devices/system/node/$list 2> /dev/null)"
done
say caches "$(lscpu -B -C=LEVEL,ALL-SIZE 2> /dev/null | tr '\n' ' ')"
for line in "$@"; do
  if command -v "${{line%% *}}" > /dev/null; then
    say "tool ${{line%% *}}" "$(sh -c "$line" 2>&1 | head -n 1)"
  else
    say "tool ${{line%% *}}" {_MISSING}
  fi
done
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What a target is.

    :ivar last_level_cache_bytes: of all its caches together; 0 where it tells none
    :ivar versions: {tool: its version}
    :ivar missing: why nothing can run there: tools, the node
    :ivar collected: what ``host collect`` or ``guest collect`` has found there
    :ivar not_collected: why that is None
    """

    hostname: str
    kernel: str | None
    cpu_model: str | None
    governor: str | None
    last_level_cache_bytes: int
    versions: Mapping[str, str]
    missing: tuple[str, ...]
    clock: Clock
    collected: dict[str, Any] | None
    not_collected: str

    def as_document(self) -> dict[str, Any]:
        """Return it as the record has it."""
        return {
            "hostname": self.hostname,
            "kernel": self.kernel,
            "cpu_model": self.cpu_model,
            "governor": self.governor,
            "last_level_cache_bytes": self.last_level_cache_bytes,
            "versions": dict(self.versions),
            "clock": self.clock._asdict(),
            "collected": self.collected,
            "not_collected": self.not_collected,
        }


async def look(target: Target, scenario: Scenario) -> Look:
    """Look at a target.

    :raises TargetError: when it does not answer
    """
    commands = [shlex.join(_VERSIONS[name]) for name in _tools(target, scenario)]
    # What the barrier takes, of GNU.
    commands += [f"{name} --version" for name in ("timeout", "date", "sleep")]
    if target.node is not None:
        commands.append("numactl --show")
    script = ["sh", "-c", _SCRIPT, "sh", *commands]
    text = await connection.run(target, script, _LOOK_S)
    facts = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    told = {
        name.removeprefix("tool "): value
        for name, value in facts.items()
        if name.startswith("tool ")
    }
    absent = [name for name, value in told.items() if value == _MISSING]
    missing = await _missing(target, absent, facts)
    collected, why_not = None, "it cannot measure"
    if not missing:
        collected, why_not = await _collected(target)
    return Look(
        hostname=facts.get("hostname", ""),
        kernel=facts.get("kernel") or None,
        cpu_model=facts.get("cpu_model") or None,
        governor=facts.get("governor", "").strip() or None,
        last_level_cache_bytes=last_level(facts.get("caches", "")),
        versions={name: _version(told[name]) for name in _VERSIONS if name in told},
        missing=missing,
        clock=Clock() if missing else await connection.clock(target),
        collected=collected,
        not_collected=why_not,
    )


async def _missing(
    target: Target, absent: list[str], facts: Mapping[str, str]
) -> tuple[str, ...]:
    """Return all that keeps the target from measuring, as far as it shows now."""
    found = [f"not installed: {', '.join(absent)}"] if absent else []
    if target.node is None:
        return tuple(found)
    nodes = [_no_node(target.node, facts)]
    if not any(nodes) and "numactl" not in absent:
        # A cpuset, or a container, may keep it off the node all the same.
        try:
            await connection.run(target, ["true"], _LOOK_S, bound=True)
        except connection.TargetError as exc:
            nodes = [f"node {target.node}: numactl cannot bind to it: {exc}"]
    return tuple(one for one in (*found, *nodes) if one)


def _no_node(node: int, facts: Mapping[str, str]) -> str:
    """Return why a NUMA node cannot be bound to; empty if nothing says so."""
    for name, what in (
        ("online", "NUMA nodes"),
        ("has_cpu", "CPUs on NUMA nodes"),
        ("has_memory", "memory on NUMA nodes"),
    ):
        numbers = facts.get(name, "")
        try:
            known = cpuset.parse(numbers)
        except CPUSetError:
            continue
        if known and node not in known:
            return f"node {node}: it has {what} {numbers} only"
    return ""


def _tools(target: Target, scenario: Scenario) -> list[str]:
    """List the tools that a target needs, each once."""
    tools = scenario.tools
    serves = {t.program for t in tools.served().values() if t.server == target.name}
    if serves:
        return sorted(serves)
    names = {tool.program for tool in tools.used().values()}
    return sorted(names | ({sysbench.NAME} if scenario.loads else set()))


def last_level(text: str) -> int:
    """Return the bytes of all caches of the last level, of lscpu's two columns."""
    numbers = [int(word) for word in text.split() if word.isdecimal()]
    # Instructions have caches of their own on the first level.
    levels = zip(numbers[::2], numbers[1::2], strict=False)
    return max(levels, default=(0, 0))[1]


async def _collected(target: Target) -> tuple[dict[str, Any] | None, str]:
    """Return what shows how the target is set up, or why it is not known."""
    try:
        return await collect(target, _INTERVAL_S), ""
    except PerfVMError as exc:
        return None, str(exc)


async def collect(target: Target, interval_s: float) -> dict[str, Any]:
    """Return what ``host collect`` or ``guest collect`` finds on a target.

    :param interval_s: between the two looks at counters
    :raises PerfVMError: when it cannot be run there, or prints something else
    """
    command = ["python3", "-", target.kind, "--interval", str(interval_s)]
    text = await connection.run(target, command, _COLLECT_S, _collector())
    reading.loads(text, target.name)
    found: dict[str, Any] = json.loads(text)
    return found


def _collector() -> bytes:
    """Return the script that collects."""
    return Path(collector.__file__).read_bytes()


def _version(text: str) -> str:
    match = _VERSION.search(text)
    return match[0] if match else text or "unknown"
