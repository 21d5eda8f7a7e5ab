# SPDX-License-Identifier: Apache-2.0
"""What takes long: storms, faults, many hosts and servers, random operations."""
