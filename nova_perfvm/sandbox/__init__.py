# SPDX-License-Identifier: Apache-2.0
"""Clouds to try the project on: inside one process, or of separate processes."""
