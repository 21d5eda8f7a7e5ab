# SPDX-License-Identifier: Apache-2.0
"""Find fixes of known bugs in the source of the installed Nova.

A git checkout or a distributor's package may contain a fix that the release of the same
version lacks.
"""

import functools
import re
from importlib import resources
from typing import Final

# {bug number on Launchpad: (file of the package nova, pattern found only with the fix)}
_FIXES: Final = {
    2144660: ("compute/claims.py", r"(?m)^ {12}pci_stats = self"),
    2151252: ("compute/api.py", r"startswith\(['\"]_nova['\"]\)"),
    2152697: ("virt/libvirt/migration.py", r"if iothreadpin is not None"),
    2153425: ("conductor/tasks/live_migrate.py", r"self\.limits = selection\.limits"),
}


@functools.cache
def has_fix(number: int) -> bool | None:
    """Return whether Nova's source has the fix of a bug; None if it cannot be told.

    :param number: number of the bug on Launchpad
    """
    try:
        path, pattern = _FIXES[number]
        source = resources.files("nova").joinpath(path).read_text(encoding="utf-8")
    except (KeyError, OSError):
        return None
    return re.search(pattern, source) is not None
