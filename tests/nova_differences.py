# SPDX-License-Identifier: Apache-2.0
"""What differs between the releases of Nova that the in-process cloud runs on.

Each difference is asked for by its feature and not by the number of the release,
so that a distributor's package with a backport is judged by what it has.  Nothing
of Nova is imported before it is asked for: threads are chosen first.
"""

from __future__ import annotations

import importlib.util
import os

PIN_CHECK = "_validate_pinning_configuration"
_NO_EVENTLET = "OS_NOVA_DISABLE_EVENTLET_PATCHING"


def tests_in_native_threads() -> bool:
    """Return whether Nova's own test fixtures work in native threads.

    Before Nova 34 all threads share a connection to SQLite, which takes only one at
    a time.  The fixtures were mended together with what came in this module.
    """
    return importlib.util.find_spec("nova.thread_pool_factory") is not None


def choose_threads() -> None:
    """Let Nova run as its own functional tests do: native threads, or eventlet.

    To be called before any other module of Nova is imported.
    """
    os.environ[_NO_EVENTLET] = "1" if tests_in_native_threads() else "0"
    from nova import monkey_patch

    # Nova 31 does it while it is imported.
    if hasattr(monkey_patch, "patch"):
        monkey_patch.patch()


def pin_check_owner() -> type:
    """Return the class with the method PIN_CHECK.

    It compares guests with the CPU sets when a compute starts: the driver from Nova
    34 on, the compute manager before.
    """
    from nova.compute.manager import ComputeManager
    from nova.virt.libvirt.driver import LibvirtDriver

    owner: type = LibvirtDriver if hasattr(LibvirtDriver, PIN_CHECK) else ComputeManager
    return owner
