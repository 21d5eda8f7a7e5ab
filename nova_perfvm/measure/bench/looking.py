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

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import collector, reading
from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.connection import Clock
from nova_perfvm.measure.bench.scenario import Scenario, Target
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, sysbench

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

    :ivar versions: {tool: its version}
    :ivar missing: tools that are not there
    :ivar collected: what ``host collect`` or ``guest collect`` has found there
    :ivar not_collected: why that is None
    """

    hostname: str
    kernel: str | None
    cpu_model: str | None
    governor: str | None
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
    missing = tuple(name for name, value in told.items() if value == _MISSING)
    collected, why_not = None, "tools are missing"
    if not missing:
        collected, why_not = await _collected(target)
    return Look(
        hostname=facts.get("hostname", ""),
        kernel=facts.get("kernel") or None,
        cpu_model=facts.get("cpu_model") or None,
        governor=facts.get("governor", "").strip() or None,
        versions={name: _version(told[name]) for name in _VERSIONS if name in told},
        missing=missing,
        clock=Clock() if missing else await connection.clock(target),
        collected=collected,
        not_collected=why_not,
    )


def _tools(target: Target, scenario: Scenario) -> list[str]:
    """List the tools that a target needs, each once."""
    server = scenario.tools.iperf3
    if server is not None and target.name == server.server:
        return [iperf3.NAME]
    tools = scenario.tools
    names = {
        sysbench.NAME: tools.sysbench_cpu or tools.sysbench_memory,
        cyclictest.NAME: tools.cyclictest,
        iperf3.NAME: tools.iperf3,
        fio.NAME: tools.fio,
    }
    return [name for name, used in names.items() if used]


async def _collected(target: Target) -> tuple[dict[str, Any] | None, str]:
    """Return what shows how the target is set up, or why it is not known."""
    command = ["python3", "-", target.kind, "--interval", str(_INTERVAL_S)]
    try:
        text = await connection.run(target, command, _COLLECT_S, _collector())
        reading.loads(text, target.name)
        found: dict[str, Any] = json.loads(text)
    except PerfVMError as exc:
        return None, str(exc)
    return found, ""


def _collector() -> bytes:
    """Return the script that collects."""
    return Path(collector.__file__).read_bytes()


def _version(text: str) -> str:
    match = _VERSION.search(text)
    return match[0] if match else text or "unknown"
