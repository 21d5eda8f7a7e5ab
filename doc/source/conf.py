# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the documentation is plain reStructuredText."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]

extensions = ["reno.sphinxext"]
project = "nova-perfvm"
copyright = "nova-perfvm contributors"
html_theme = "alabaster"
exclude_patterns = []
# reno reads git, or what an sdist has of it; an archive of the tree has neither.
if not any((ROOT / n).exists() for n in (".git", "releasenotes/notes/reno.cache")):
    exclude_patterns.append("releasenotes.rst")
    suppress_warnings = ["toc.excluded"]
