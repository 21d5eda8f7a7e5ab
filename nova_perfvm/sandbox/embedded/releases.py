# SPDX-License-Identifier: Apache-2.0
"""What differs between the releases of Nova that the in-process cloud runs on.

Each difference is asked for by its feature and not by the number of the release,
so that a distributor's package with a backport is judged by what it has.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_THREADS = "OS_NOVA_DISABLE_EVENTLET_PATCHING"


def tests_in_native_threads() -> bool:
    """Return whether Nova's own test fixtures work in native threads.

    Before Nova 34 they give all threads one SQLite database in memory, which
    breaks there.  It must be known before any module of Nova is imported; the
    module that starts the threads came with the fixtures' change.
    """
    return importlib.util.find_spec("nova.thread_pool_factory") is not None


def choose_threads() -> None:
    """Let Nova run as its own functional tests do: native threads, or eventlet.

    To be called before any other module of Nova is imported.
    """
    os.environ[_THREADS] = "1" if tests_in_native_threads() else "0"
    from nova import monkey_patch  # noqa: PLC0415

    # Nova 31 does it while it is imported.
    if hasattr(monkey_patch, "patch"):
        monkey_patch.patch()


def methods(owner: type, names: Iterable[str]) -> list[str]:
    """Return those of the names that are methods of this release's class."""
    return [name for name in names if hasattr(owner, name)]
