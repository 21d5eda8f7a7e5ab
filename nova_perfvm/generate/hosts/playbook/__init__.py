# SPDX-License-Identifier: Apache-2.0
"""An Ansible playbook that drains, configures and enrolls hosts, one after the other.

Ansible copies files to the hosts and restarts nova-compute.  nova_perfvm's commands,
which run on the control node, generate the files, move servers and verify the result.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import PurePath
from typing import Final

PLAYBOOK: Final = "hosts.yml"
# Unlike an operator's own inventory.yml, the next version replaces this file.
INVENTORY: Final = "inventory.example.yml"
# The playbook's steps in their order; --tags runs single steps.
STEPS: Final = ("drain", "configure", "restart", "enroll", "verify")
FILES: Final = (PLAYBOOK, "look.yml", *(f"{step}.yml" for step in STEPS), INVENTORY)


def files() -> Mapping[str, str]:
    """Return the texts of the playbook's files by name."""
    own = resources.files(__name__)
    return {name: own.joinpath(name).read_text(encoding="utf-8") for name in FILES}


def following(directory: PurePath) -> str:
    """Return the operator's next steps, as lines to read.

    :param directory: directory of the playbook's files
    """
    return (
        f"Next, with the credentials of an administrator and PERFVM_POLICY set:\n"
        f"  cd {shlex.quote(str(directory))}\n"
        f"  cp {INVENTORY} inventory.yml        # and write your hosts into it\n"
        f"  ansible-playbook -i inventory.yml {PLAYBOOK} --check\n"
        f"  ansible-playbook -i inventory.yml {PLAYBOOK}\n"
    )
