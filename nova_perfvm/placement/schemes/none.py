# SPDX-License-Identifier: Apache-2.0
"""Nothing: Placement counts CPUs and memory alone, and the filter does the rest."""

from typing import Final

from nova_perfvm.placement.schemes.scheme import Scheme


class NoScheme(Scheme):
    """``placement: none``."""

    name = "none"
    summary = "Placement knows nothing of classes"


NONE: Final = NoScheme()
