# SPDX-License-Identifier: Apache-2.0
"""Random operations on a cloud in this process, judged after each of them.

``case`` runs them, ``clouds`` says on which hosts and how the policy changes
meanwhile, ``steps`` and ``hostile`` are what is done, and ``verdict`` is the judge,
which shares nothing with the product.
"""

# First, before anything of Nova is imported: it chooses the threading mode.
from tests import cloud  # noqa: F401
