# SPDX-License-Identifier: Apache-2.0
"""Parsers of collected files and commands: one module for each source."""
