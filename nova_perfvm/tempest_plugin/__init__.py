# SPDX-License-Identifier: Apache-2.0
"""Tempest tests of the placement of VMs, which use a cloud's APIs alone."""
