# SPDX-License-Identifier: Apache-2.0
"""Certificates: whether VMs have what their flavor promises, with the evidence."""
