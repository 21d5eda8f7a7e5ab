# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the documentation is plain reStructuredText."""

# The notes under releasenotes/, which it asks git for
extensions = ["reno.sphinxext"]
project = "nova-perfvm"
copyright = "nova-perfvm contributors"
html_theme = "alabaster"
exclude_patterns = []
