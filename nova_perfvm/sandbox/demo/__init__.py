# SPDX-License-Identifier: Apache-2.0
"""The main job on an embedded cloud: ``python -m nova_perfvm.sandbox.demo``."""
