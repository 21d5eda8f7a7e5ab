# SPDX-License-Identifier: Apache-2.0
"""The inventory file: the NUMA nodes of hosts, as their operator keeps them."""

from nova_perfvm.generate.inventory.document import load, parse
from nova_perfvm.generate.inventory.merge import with_inventory

__all__ = ["load", "parse", "with_inventory"]
