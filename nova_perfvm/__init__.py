# SPDX-License-Identifier: Apache-2.0
"""Two VM classes for Nova, from one declared policy.

High-performance VMs own their physical CPUs inside one NUMA node; general VMs
share theirs.  The policy is declared once (``perfvm.yaml``) and everything
else -- the scheduler's verdict, flavors, image properties -- follows from it.
"""
