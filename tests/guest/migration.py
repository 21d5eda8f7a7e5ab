# SPDX-License-Identifier: Apache-2.0
"""Live migrations between two QEMUs, of a guest that writes at a planted rate."""

import contextlib
import json
import pathlib
import socket
import subprocess
import time
from typing import NamedTuple

from nova_perfvm.changes.migrations.forecast import Limits

NEEDED = ("qemu-system-x86_64", "gcc")
SOURCE = pathlib.Path(__file__).with_name("dirtier.c")
PAGES_PER_MIB = 256
# At the end of memory, where the firmware has its tables.
KEPT_PAGES = 64
TIMER_HZ = 3579545
# A guest that is to be throttled makes up for so little, one that is not for a second.
THROTTLED_TICKS, ALL_TICKS = TIMER_HZ // 1000, TIMER_HZ
# Nova looks each half of a second; these are small, so more often.
POLL_S = 0.05
PATIENCE_S = 60
_COMPILER = """
-m32 -O2 -Wall -Wextra -Werror -ffreestanding -fno-pic -no-pie -nostdlib
-fno-stack-protector -fno-asynchronous-unwind-tables
-Wl,-Ttext=0x100000,--build-id=none,-z,noexecstack
"""


class Planted(NamedTuple):
    """A migration that is to be made; MiB, and MiB per second.

    :ivar rate: of writes to random pages of the working set
    :ivar limits: what Nova would be set up for
    """

    memory: int
    working_set: int
    rate: float
    bandwidth: int
    limits: Limits


class Measured(NamedTuple):
    """What became of it.

    :ivar dirty_rate: what QEMU calculated before, in MiB per second
    :ivar outcome: as forecasts have it
    """

    dirty_rate: int
    outcome: str
    time_s: float
    downtime_s: float


def compile_guest(directory):
    """Return the path of the guest's kernel."""
    path = pathlib.Path(directory, "dirtier")
    subprocess.run(["gcc", *_COMPILER.split(), "-o", path, SOURCE], check=True)
    return path


def migrate(kernel, directory, planted):
    """Make a migration, as Nova watches over it; return what was measured."""
    directory = pathlib.Path(directory)
    with contextlib.ExitStack() as stack:
        source, target = (
            stack.enter_context(_qemu(kernel, directory / name, planted, options))
            for name, options in (("from", ()), ("to", ("-incoming", "defer")))
        )
        console = directory / "from.console"
        _until(lambda: "R" in console.read_text())
        source.run("calc-dirty-rate", **{"calc-time": 1, "sample-pages": 16384})
        _until(lambda: source.run("query-dirty-rate")["status"] == "measured")
        dirty_rate = source.run("query-dirty-rate")["dirty-rate"]
        uri = f"unix:{directory / 'stream'}"
        target.run("migrate-incoming", uri=uri)
        able = {
            "capability": "auto-converge",
            "state": planted.limits.auto_converge,
        }
        source.run("migrate-set-capabilities", capabilities=[able])
        most = planted.bandwidth << 20
        source.run("migrate-set-parameters", **{"max-bandwidth": most})
        return Measured(dirty_rate, *_watched(source, uri, planted.limits))


def _watched(source, uri, limits):
    """Migrate; raise the downtime and act at the timeout, as Nova does."""
    allowed, outcome, found = 0, "converges", {"status": "setup"}
    began = time.monotonic()
    while found["status"] in {"setup", "active", "device"}:
        elapsed = time.monotonic() - began
        if (now := round(1000 * limits.downtime_s(elapsed))) != allowed:
            source.run("migrate-set-parameters", **{"downtime-limit": now})
            if not allowed:
                source.run("migrate", uri=uri)
            allowed = now
        if limits.timeout_s and elapsed > limits.timeout_s and outcome == "converges":
            if limits.action == "abort":
                source.run("migrate_cancel")
                return "aborted", elapsed, 0.0
            source.run("stop")
            outcome = "paused"
        time.sleep(POLL_S)
        found = source.run("query-migrate")
    if found["status"] != "completed":
        message = f"the migration is {found}"
        raise AssertionError(message)
    return outcome, found["total-time"] / 1000, found["downtime"] / 1000


class _Monitor:
    """QEMU's, in JSON."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        _until(lambda: self._socket.connect_ex(str(path)) == 0)
        self._file = self._socket.makefile("rw")
        self._file.readline()
        self.run("qmp_capabilities")

    def run(self, name, **arguments):
        """Run a command; return its answer."""
        self._file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self._file.flush()
        for line in self._file:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                break
        message = f"{name}: {line}"
        raise AssertionError(message)

    def close(self):
        self._file.close()
        self._socket.close()


@contextlib.contextmanager
def _qemu(kernel, path, planted, options):
    """Start a QEMU with the guest; yield its monitor."""
    throttled = planted.limits.auto_converge
    numbers = (
        planted.memory * PAGES_PER_MIB - KEPT_PAGES,
        planted.working_set * PAGES_PER_MIB,
        int(planted.rate * PAGES_PER_MIB * 2**32 / TIMER_HZ),
        THROTTLED_TICKS if throttled else ALL_TICKS,
    )
    console, monitor = f"{path}.console", f"{path}.monitor"
    process = subprocess.Popen(
        (
            *("qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-nodefaults"),
            *("-nographic", "-m", str(planted.memory), "-kernel", str(kernel)),
            *("-append", " ".join(map(str, numbers))),
            *("-qmp", f"unix:{monitor},server=on,wait=off"),
            *("-chardev", f"file,id=console,path={console}"),
            *("-device", "isa-debugcon,iobase=0xe9,chardev=console"),
            *options,
        ),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with contextlib.closing(_Monitor(monitor)) as opened:
            yield opened
    finally:
        process.kill()
        process.wait()


def _until(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            message = f"not within {PATIENCE_S} s"
            raise AssertionError(message)
        time.sleep(POLL_S / 2)
