# SPDX-License-Identifier: Apache-2.0
"""Formats of flavors, image properties, limits and policies.

Each format is a function that returns text with a final line break.
"""
