# SPDX-License-Identifier: Apache-2.0
"""Tests for Tempest: a cloud's placing of VMs, judged by its APIs alone."""
