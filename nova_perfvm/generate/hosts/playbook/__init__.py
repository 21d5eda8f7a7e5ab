# SPDX-License-Identifier: Apache-2.0
"""An Ansible playbook that takes compute hosts in, one after the other.

Ansible brings files to the hosts and restarts nova-compute.  What belongs into the
files, where servers go and whether all is well is left to this project's commands,
which run beside Ansible.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import PurePath
from typing import Final

PLAYBOOK: Final = "hosts.yml"
# No name that an operator's own inventory has: it is replaced by the next version.
INVENTORY: Final = "inventory.example.yml"
# What can be asked for alone, in the order in which it is done.
STEPS: Final = ("drain", "configure", "restart", "enroll", "verify")
FILES: Final = (PLAYBOOK, "look.yml", *(f"{step}.yml" for step in STEPS), INVENTORY)


def files() -> Mapping[str, str]:
    """Return what ``ansible-playbook`` needs, of the same directory: {name: text}."""
    own = resources.files(__name__)
    return {name: own.joinpath(name).read_text(encoding="utf-8") for name in FILES}


def following(directory: PurePath) -> str:
    """Return what to do next, as lines to read.

    :param directory: where the files are
    """
    return (
        f"Next, with the credentials of an administrator and PERFVM_POLICY set:\n"
        f"  cd {shlex.quote(str(directory))}\n"
        f"  cp {INVENTORY} inventory.yml        # and write your hosts into it\n"
        f"  ansible-playbook -i inventory.yml {PLAYBOOK} --check\n"
        f"  ansible-playbook -i inventory.yml {PLAYBOOK}\n"
    )
