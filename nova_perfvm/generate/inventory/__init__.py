# SPDX-License-Identifier: Apache-2.0
"""The inventory file: the NUMA nodes of hosts, as their operator keeps them."""

from nova_perfvm.generate.inventory.document import InventoryError, load, parse
from nova_perfvm.generate.inventory.merge import with_inventory

__all__ = ["InventoryError", "load", "parse", "with_inventory"]
