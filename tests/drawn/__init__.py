# SPDX-License-Identifier: Apache-2.0
"""Flavors, images, hosts, filters and aggregates of real clouds, and who draws them.

The YAML files are lists that grow: whoever meets a flavor, an image or a setting that
is judged otherwise than nova-scheduler does appends it, with its source.  ``cases``
draws from them, ``cloud`` and ``agreement`` build what was drawn as an embedded cloud,
``scheduler`` asks the real nova-api and nova-scheduler, ``dry_run`` and ``model`` ask
ours, ``comparing`` holds one against the other.  Nothing here reads the code that gives
verdicts.
"""
