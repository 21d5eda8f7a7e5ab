# SPDX-License-Identifier: Apache-2.0
"""Checks of a running host or guest, by what they read."""
