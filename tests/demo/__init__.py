# SPDX-License-Identifier: Apache-2.0
"""What ``make demo`` shows: VMs that boot and are refused on a real Nova."""
