# SPDX-License-Identifier: Apache-2.0
"""Commands that judge; what they find is the exit status."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cliff.lister import Lister

from nova_perfvm.diagnose.preflight import worst
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import CANNOT_TELL
from nova_perfvm.osc.output import PrintableCommand
from nova_perfvm.printable import printable

if TYPE_CHECKING:
    import argparse

    from nova_perfvm.diagnose.preflight import CheckResult

_LOG = logging.getLogger(__name__)
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


class JudgingLister(PrintableCommand, Lister):
    """A command that lists what it finds, and ends with the code of the worst.

    :cvar cannot_tell: its code if it could not look
    """

    auth_required = True
    cannot_tell = CANNOT_TELL

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit status."""
        self._exit_code = 0
        try:
            return super().run(parsed_args) or self._exit_code
        except PerfVMError as exc:
            self.app.stderr.write(f"{exc}\n")
        except BrokenPipeError:
            raise
        except Exception as exc:  # noqa: BLE001
            # Left to cliff, it would be status 1, which means that all was seen.
            debug = getattr(self.app_args, "debug", False)
            said = printable(f"{type(exc).__name__}: {exc}")
            _LOG.error("%s", said, exc_info=debug)
        return self.cannot_tell

    def judged(self, exit_code: int) -> None:
        """Keep the code of what was found."""
        self._exit_code = exit_code


class ChecksLister(JudgingLister):
    """A command that lists the results of checks.

    Exits with 0 if all is well, 1 for warnings and what is unknown, 2 for
    failures, 3 if it could not look.
    """

    def listed(self, results: list[tuple[str, CheckResult]]) -> Table:
        """Return the table of results, and keep the code of the worst."""
        self.judged(worst(results).exit_code)
        rows: list[tuple[str, ...]] = [
            (title, result.code.name, "\n".join(result.details), result.remedy)
            for title, result in results
        ]
        return ("Check", "Result", "Details", "Remedy"), rows
