# SPDX-License-Identifier: Apache-2.0
"""The operator's file of hosts and their NUMA nodes; no inventory of Placement."""

from nova_perfvm.generate.inventory.document import load, parse
from nova_perfvm.generate.inventory.merge import with_inventory

__all__ = ["load", "parse", "with_inventory"]
