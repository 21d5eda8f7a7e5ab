# SPDX-License-Identifier: Apache-2.0
"""How flavors, image properties and policies are printed.

Each format is a function from values to text with a final line break.
"""
