# SPDX-License-Identifier: Apache-2.0
"""Checks of hypervisors, one file each."""
