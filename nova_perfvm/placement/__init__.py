# SPDX-License-Identifier: Apache-2.0
"""How Placement counts VMs: resources that VMs take, and inventories of hosts."""
