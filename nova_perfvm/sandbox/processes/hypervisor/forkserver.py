# SPDX-License-Identifier: Apache-2.0
"""Starts nova-compute processes that share what all of them import.

``python -m nova_perfvm.sandbox.processes.hypervisor.forkserver SOCKET`` imports
once and then forks for each line on SOCKET: ``{"log": ..., "output": ...,
"config_files": [...], "hardware": {...}}``; it answers with the pid.  A compute
that was forked costs less than half the memory of one that was not, and starts
at once.  Nothing here knows the computes afterwards: they may be killed, and
outlive the fork server.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from typing import Any, Final

# What each compute imports, some of it only as it starts.
SHARED: Final = (
    "nova.cmd.compute",
    "nova.compute.manager",
    "nova.compute.resource_tracker",
    "nova.virt.libvirt.driver",
    "nova.image.glance",
    "nova.network.neutron",
    "oslo_messaging._drivers.impl_rabbit",
    "kombu.transport.pyamqp",
    "nova_perfvm.sandbox.processes.hypervisor.pretences",
)


def import_shared() -> None:
    """Import Nova, for native threads."""
    importlib.import_module("nova.monkey_patch").patch(backend="threading")
    for name in SHARED:
        importlib.import_module(name)


def main() -> None:
    """Serve until SIGTERM."""
    (path,) = sys.argv[1:]
    import_shared()
    # The kernel buries the children: nobody waits for them here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    gc.collect()
    # The collector would write into every page, and unshare it.
    gc.freeze()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    while True:
        client, _ = server.accept()
        with client, client.makefile("rw") as stream:
            order = json.loads(stream.readline())
            pid = os.fork()
            if pid == 0:
                server.close()
                _become_compute(order)
            stream.write(f"{pid}\n")


def _become_compute(order: dict[str, Any]) -> None:
    """Be a nova-compute, and never return."""
    status = 1
    try:
        _leave_fork_server(order["output"])
        sys.argv = ["nova-compute", "--log-file", order["log"]]
        for file in order["config_files"]:
            sys.argv += ["--config-file", file]
        pretences = sys.modules[SHARED[-1]]
        pretences.pretend(pretences.Hardware(**order["hardware"]))
        sys.modules["nova.cmd.compute"].main()
        status = 0
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        if isinstance(exc.code, str):
            sys.stderr.write(f"{exc.code}\n")
    except BaseException:  # noqa: BLE001 - it is the end of this process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _leave_fork_server(output: str) -> None:
    """Be a process of its own, with its own output."""
    os.setsid()
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


if __name__ == "__main__":
    main()
