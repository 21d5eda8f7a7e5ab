# SPDX-License-Identifier: Apache-2.0
"""Simulate a cloud after changes that nobody has made yet."""
