# SPDX-License-Identifier: Apache-2.0
"""A private memcached, for keystone's tokens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nova_perfvm.sandbox.processes import waiting
from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.process import Processes
    from nova_perfvm.sandbox.processes.programs import Programs
    from nova_perfvm.sandbox.processes.settings import SandboxSettings


def start(processes: Processes, programs: Programs, settings: SandboxSettings) -> None:
    """Start memcached.

    :raises SandboxError: when it does not start
    """
    port = settings.ports["memcached"]
    command = [programs.memcached, "-l", ADDRESS, "-p", str(port), "-m", "64"]
    if os.geteuid() == 0:
        # It refuses to run as root.
        command += ["-u", "nobody"]
    record = processes.start("memcached", command, port=port)
    waiting.until_listening(processes, record)
