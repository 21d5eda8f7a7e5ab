# SPDX-License-Identifier: Apache-2.0
"""Generators of extra specs and image properties, as other packages add them."""

from unittest import mock

from nova_perfvm.generate.properties import BUILT_IN, extensions


def installed(**generators):
    """Let generators be installed beside the built-in ones, while in the context."""
    both = BUILT_IN | generators
    return mock.patch.object(extensions, "load_generators", lambda: both)
