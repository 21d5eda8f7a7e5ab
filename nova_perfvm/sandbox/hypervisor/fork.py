# SPDX-License-Identifier: Apache-2.0
"""Start nova-compute processes that share the memory of imported modules.

``python -m nova_perfvm.sandbox.hypervisor.fork ORDERS`` imports Nova once, forks a
process for each order in a JSON list, prints the pids, and ends.  An order is
``{"log": ..., "output": ..., "config_files": [...], "hardware": {...}}``; the first
configuration file is the same in all orders.  A forked compute takes less than half
the memory of a separately started one, and starts at once.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from typing import Any, Final

# Modules of nova-compute, including modules that it imports after its start.
SHARED: Final = (
    "nova.cmd.compute",
    "nova.compute.manager",
    "nova.compute.resource_tracker",
    "nova.virt.libvirt.driver",
    "nova.image.glance",
    "nova.network.neutron",
    "oslo_messaging._drivers.impl_rabbit",
    "kombu.transport.pyamqp",
    "nova_perfvm.sandbox.hypervisor.pretences",
)


def main() -> None:
    # Select native threads before any other import of Nova.
    importlib.import_module("nova.monkey_patch").patch(backend="threading")
    orders = json.loads(sys.argv[1])
    # Decorators of periodic tasks read their intervals at import.
    conf = importlib.import_module("nova.conf").CONF
    conf(["--config-file", orders[0]["config_files"][0]], project="nova")
    for name in SHARED:
        importlib.import_module(name)
    conf.clear()
    gc.collect()
    # The garbage collector would write into shared pages, so that each is copied.
    gc.freeze()
    for order in orders:
        pid = os.fork()
        if pid == 0:
            _become_compute(order)
        os.write(1, f"{pid}\n".encode())


def _become_compute(order: dict[str, Any]) -> None:
    """Run nova-compute in a session of its own, with its own output; never return."""
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
    except BaseException:  # noqa: BLE001 - this process ends
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
