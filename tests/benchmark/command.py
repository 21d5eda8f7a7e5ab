# SPDX-License-Identifier: Apache-2.0
"""What commands that measure on servers of their own have in common."""

import argparse
import signal
import sys

from tests.processes.errors import SandboxError


def positive(text):
    """Return a number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def tell(text):
    """Show progress on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\033[K")
        sys.stderr.flush()


def status_of(measure, *arguments):
    """Measure; return 1 with the reason when it cannot be done."""
    # As Ctrl-C does: so that what was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        measure(*arguments)
    except SandboxError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
