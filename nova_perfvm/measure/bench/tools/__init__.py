# SPDX-License-Identifier: Apache-2.0
"""The tools that measure, one a file: its keys, command lines, and output."""
