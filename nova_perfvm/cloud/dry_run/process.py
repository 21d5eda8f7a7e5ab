# SPDX-License-Identifier: Apache-2.0
"""Ask Nova's scheduler in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.dry_run import Question, SchedulerAnswer


class DryRunError(PerfVMError):
    """The process of the dry run has failed."""


def ask(nova_conf: str, question: Question) -> SchedulerAnswer:
    """Return Nova's scheduling of a request; runs on a controller.

    :param nova_conf: path of nova-scheduler's configuration file
    :raises DryRunError: when the process fails
    """
    command = [sys.executable, "-m", __package__, "--config-file", nova_conf]
    ran = subprocess.run(  # noqa: S603  Python itself
        command,
        input=json.dumps(asdict(question)),
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"]
        raise DryRunError(
            f"Nova's scheduler cannot be run dry with {nova_conf}: {lines[-1]}"
        )
    return SchedulerAnswer.loads(ran.stdout)
