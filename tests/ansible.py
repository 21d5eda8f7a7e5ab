# SPDX-License-Identifier: Apache-2.0
"""Ansible's programs, run with nothing of whoever runs the tests."""

import os
import pathlib
import subprocess
import sys

# Where Ansible is: where the tests' Python is.
PROGRAMS = pathlib.Path(sys.executable).parent


def run(directory, program, *arguments, timeout_s, environment=None):
    """Run a program of Ansible on ``inventory.yml``.

    :param environment: that of the program (default: this process's)
    :returns: its exit status, and what it has printed
    """
    (directory / "ansible.cfg").touch()
    done = subprocess.run(
        [PROGRAMS / program, "-i", "inventory.yml", *arguments],
        cwd=directory,
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=(os.environ if environment is None else environment)
        | {
            "ANSIBLE_HOME": str(directory / ".ansible"),
            "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "ANSIBLE_PIPELINING": "1",
            # A machine that others use, too, may take a while.
            "ANSIBLE_TIMEOUT": "60",
        },
    )
    return done.returncode, done.stdout + done.stderr
