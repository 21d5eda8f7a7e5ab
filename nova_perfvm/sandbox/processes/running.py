# SPDX-License-Identifier: Apache-2.0
"""Run a command and wait for its end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from nova_perfvm.sandbox.processes.errors import SandboxError


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    password: str | None = None,
) -> str:
    """Run a command and return its output.

    :param log: a file to which the output is appended
    :param password: a text to hide in messages and in the file
    :raises SandboxError: when the command fails; has the end of the output
    """
    result = subprocess.run(  # noqa: S603
        command,
        check=False,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=None if env is None else dict(env),
    )
    told, line = result.stdout, " ".join(command)
    if password:
        told, line = told.replace(password, "***"), line.replace(password, "***")
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {line}\n{told}")
    if result.returncode:
        shown = "\n".join(f"  {text}" for text in told.splitlines()[-15:])
        where = "" if log is None else f" (all of it is in {log})"
        raise SandboxError(f"failed with {result.returncode}{where}: {line}\n{shown}")
    return result.stdout
