# SPDX-License-Identifier: Apache-2.0
"""Tests on sandboxes that take long: storms, faults, many hosts, many servers."""
