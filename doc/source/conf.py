# SPDX-License-Identifier: Apache-2.0
"""Sphinx: plain reStructuredText, and a reference that is made of the code."""

import sys
import warnings
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / "doc/ext"))
# Of Nova, whose validators the reference lists.
warnings.filterwarnings("ignore", r"\s*Eventlet is deprecated")

project = "nova-perfvm"
# What `nova-perfvm --version` prints.  The theme knows the last tag only.
version = release = metadata.version(project)
openstackdocs_auto_version = False
copyright = "nova-perfvm contributors"
extensions = [
    "cliff.sphinxext",
    "openstackdocstheme",
    "oslo_config.sphinxext",
    "perfvm_contributing",
    "perfvm_reference",
    "reno.sphinxext",
]
html_theme = "openstackdocs"
exclude_patterns = []
# Quotes and ellipses, and no dashes: the options of commands begin with two hyphens.
smartquotes_action = "qe"
# A reference within these pages that leads nowhere is a warning, and so an error.
nitpicky = True

# The project is none of OpenStack's own: no bugs at Launchpad, no releases there.
openstackdocs_auto_name = False
openstackdocs_repo_name = ""
openstackdocs_use_storyboard = False
html_theme_options = {
    "display_global_toc_section": True,
    "sidebar_mode": "toctree",
    # Nothing is loaded from elsewhere: no analytics, and a search of these pages.
    "analytics_tracking_code": "",
    "sidebar_search": True,
}
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["perfvm.css"]
# What cliff gives to every command that lists something.
autoprogram_cliff_ignored = [
    *("-f", "-c", "--quote", "--noindent", "--max-width", "--fit-width"),
    *("--print-empty", "--sort-column", "--sort-ascending", "--sort-descending"),
    *("--prefix",),
]
# reno reads git, or what an sdist has of it; an archive of the tree has neither.
if not any((ROOT / n).exists() for n in (".git", "releasenotes/notes/reno.cache")):
    exclude_patterns.append("releasenotes.rst")
    suppress_warnings = ["toc.excluded"]
