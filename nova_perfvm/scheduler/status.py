# SPDX-License-Identifier: Apache-2.0
"""The program ``nova-perfvm-status``; without Nova it explains where to run it."""

from __future__ import annotations

import sys

from nova_perfvm import constants as const
from nova_perfvm.findings import CANNOT_TELL


def main(argv: list[str] | None = None) -> int:
    """Run the checks of :mod:`nova_perfvm.scheduler.upgrade_check`.

    :returns: exit status: the worst check's code; ``CANNOT_TELL`` without Nova
    """
    try:
        from nova_perfvm.scheduler import upgrade_check  # noqa: PLC0415 - Nova's
    except ModuleNotFoundError as exc:
        if (exc.name or "nova_perfvm").partition(".")[0] == "nova_perfvm":
            raise
        sys.stderr.write(
            f"nova-perfvm-status: nothing was checked: {exc} in {sys.prefix}: run it "
            "on a controller, with the Python that nova-scheduler has, after "
            f"pip install {const.PACKAGE} there\n"
        )
        return CANNOT_TELL
    return upgrade_check.main(argv)
