# SPDX-License-Identifier: Apache-2.0
"""Commands that judge; what they find is the exit status."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from typing import Any

from cliff.lister import Lister

from nova_perfvm.diagnose.preflight import CheckResult, worst
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import CANNOT_TELL, PolicyCommand
from nova_perfvm.printable import printable

_LOG = logging.getLogger(__name__)
Table = tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]


class JudgingLister(PolicyCommand, Lister):
    """A command that lists what it finds, and ends with the code of the worst.

    :cvar cannot_tell: its code if it could not look
    """

    auth_required = True
    cannot_tell = CANNOT_TELL

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit status."""
        try:
            return super().run(parsed_args)
        except PerfVMError as exc:
            self.app.stderr.write(f"{exc}\n")
        except BrokenPipeError:
            raise
        except Exception as exc:  # noqa: BLE001
            # Left to cliff, it would be status 1, which means that all was seen.
            debug = getattr(self.app_args, "debug", False)
            message = printable(f"{type(exc).__name__}: {exc}")
            _LOG.error("%s", message, exc_info=debug)
        return self.cannot_tell


class ChecksLister(JudgingLister):
    """A command that lists the results of checks.

    Exits with 0 if all is well, 1 for warnings and what is unknown, 2 for
    failures, 3 if it could not look.
    """

    def listed(self, results: list[tuple[str, CheckResult]]) -> Table:
        """Return the table of results, and keep the code of the worst."""
        self.exit_status = worst(results).exit_code
        return ("Check", "Result", "Details", "Remedy"), [
            (title, result.code.name, "\n".join(result.details), result.remedy)
            for title, result in results
        ]
