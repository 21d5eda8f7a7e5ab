# SPDX-License-Identifier: Apache-2.0
"""The classes that an aggregate's metadata reserves its hosts for."""

from collections.abc import Mapping

from nova_perfvm import constants as const


def labels_of(metadata: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the classes; commas separate them, as everywhere in Nova.

    :param metadata: metadata of one aggregate
    """
    names = metadata.get(const.CLASS_KEY, "").split(",")
    return frozenset(name.strip() for name in names) - {""}
