# SPDX-License-Identifier: Apache-2.0
"""Start nova-compute processes that share what all of them import.

``python -m tests.hypervisor.fork ORDERS`` imports once, and
forks for each order in a JSON list: ``{"log": ..., "output": ..., "config_files":
[...], "hardware": {...}}``.  The first configuration file is the same for all.  It
prints a pid for each, and ends.  A compute that was forked costs less than half the
memory of one that was not, and starts at once.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
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
    "tests.hypervisor.pretences",
)


def main() -> None:
    """Start what is ordered."""
    # For native threads, before anything else of Nova.
    importlib.import_module("nova.monkey_patch").patch(backend="threading")
    orders = json.loads(sys.argv[1])
    # Periodic tasks read their intervals when they are imported.
    conf = importlib.import_module("nova.conf").CONF
    conf(["--config-file", orders[0]["config_files"][0]], project="nova")
    for name in SHARED:
        importlib.import_module(name)
    conf.clear()
    gc.collect()
    # The collector would write into every page, and unshare it.
    gc.freeze()
    for order in orders:
        pid = os.fork()
        if pid == 0:
            _become_compute(order)
        os.write(1, f"{pid}\n".encode())


def _become_compute(order: dict[str, Any]) -> None:
    """Be a nova-compute with a session and output of its own; never return."""
    status = 1
    try:
        os.setsid()
        output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["nova-compute", "--log-file", order["log"]]
        sys.argv += [f"--config-file={file}" for file in order["config_files"]]
        pretences = sys.modules[SHARED[-1]]
        pretences.pretend(pretences.Hardware(**order["hardware"]))
        sys.modules["nova.cmd.compute"].main()
        status = 0
    except BaseException:  # noqa: BLE001 - it is the end of this process
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
