# SPDX-License-Identifier: Apache-2.0
"""The error of the sandbox."""

from __future__ import annotations

from nova_perfvm.exceptions import PerfVMError


class SandboxError(PerfVMError):
    """A failure of a sandbox command, with a message for the user."""
