# SPDX-License-Identifier: Apache-2.0
"""Calculate from the peaks of services which VMs carry them, and on how many hosts."""
