# SPDX-License-Identifier: Apache-2.0
"""Readers of what was collected on machines: one file for each source."""
