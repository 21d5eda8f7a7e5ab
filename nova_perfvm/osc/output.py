# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Where what commands print goes, and what to do when it does not arrive."""

from __future__ import annotations

import os
import sys

# As a shell says it of a process that SIGPIPE ended, and cliff of its commands.
SIGPIPE_EXIT = 128 + 13


def flush(status: int) -> int:
    """Print what is still buffered, as the last that a process does.

    :param status: its exit status, if that arrives
    :returns: its exit status
    """
    if sys.stdout.closed:
        # By the pager of a command's help.
        return status
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard()
        return SIGPIPE_EXIT
    except OSError as exc:
        discard()
        sys.stderr.write(f"{lost(exc)}\n")
        return status or 1
    return status


def lost(cause: Exception) -> str:
    """Say that the output did not arrive."""
    return f"cannot write the output: {cause}"


def discard() -> None:
    """Send what is still buffered nowhere, or Python tries once more at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)
