# SPDX-License-Identifier: Apache-2.0
"""The operator's inventory file: NUMA nodes of hosts (not Placement's inventories)."""

from nova_perfvm.generate.inventory.document import load, parse
from nova_perfvm.generate.inventory.merge import with_inventory

__all__ = ["load", "parse", "with_inventory"]
