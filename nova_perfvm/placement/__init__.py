# SPDX-License-Identifier: Apache-2.0
"""How Placement counts VMs: what a VM of each class takes, what a host offers."""
