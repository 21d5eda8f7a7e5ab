# SPDX-License-Identifier: Apache-2.0
"""An Ansible playbook that collects on many machines, and proves a flavor on hosts."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from nova_perfvm.measure.collect import reading

COLLECTOR: Final = "collector.py"
PLAYBOOK: Final = "fleet.yml"
# No name that an operator's own inventory has: it is replaced by the next version.
INVENTORY: Final = "inventory.example.yml"
FILES: Final = (PLAYBOOK, INVENTORY, COLLECTOR)


def files() -> Mapping[str, str]:
    """Return {name: text} of the files for ``ansible-playbook``, of one directory."""
    own = resources.files(__name__)
    return {
        name: own.joinpath(name).read_text(encoding="utf-8")
        for name in (PLAYBOOK, INVENTORY)
    } | {COLLECTOR: reading.script()}
