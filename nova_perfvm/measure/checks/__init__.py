# SPDX-License-Identifier: Apache-2.0
"""Checks of a running host or guest, one file each."""
