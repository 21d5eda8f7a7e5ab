# SPDX-License-Identifier: Apache-2.0
"""What an operator of the sandbox can act on."""

from __future__ import annotations

from nova_perfvm.exceptions import PerfVMError


class SandboxError(PerfVMError):
    """Anything that keeps the sandbox from doing what was asked for."""
