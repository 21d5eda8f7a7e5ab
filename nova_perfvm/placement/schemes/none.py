# SPDX-License-Identifier: Apache-2.0
"""The scheme ``none``: Placement counts CPUs and memory, and the filter all else."""

from typing import Final

from nova_perfvm.placement.schemes.scheme import Scheme


class NoScheme(Scheme):
    """``placement: none``."""

    name = "none"
    summary = "Placement knows nothing of classes"


NONE: Final = NoScheme()
