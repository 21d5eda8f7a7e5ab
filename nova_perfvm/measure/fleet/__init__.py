# SPDX-License-Identifier: Apache-2.0
"""An Ansible playbook that collects and measures on a fleet of hosts and guests.

Ansible brings what is needed to the machines and back.  What is measured, and that
all start together, is left to ``bench run``, for which the playbook writes the
scenario of each host and its guests.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from nova_perfvm.measure.collect import reading

COLLECTOR: Final = "collector.py"
PLAYBOOK: Final = "fleet.yml"
# No name that an operator's own inventory has: it is replaced by the next version.
INVENTORY: Final = "inventory.example.yml"
_OWN: Final = (PLAYBOOK, "run.yml", "scenario.yaml.j2", INVENTORY)
FILES: Final = (*_OWN, COLLECTOR)


def files() -> Mapping[str, str]:
    """Return what ``ansible-playbook`` needs, of the same directory: {name: text}."""
    own = resources.files(__name__)
    return {name: own.joinpath(name).read_text(encoding="utf-8") for name in _OWN} | {
        COLLECTOR: reading.script()
    }
