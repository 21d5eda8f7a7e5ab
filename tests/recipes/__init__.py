# SPDX-License-Identifier: Apache-2.0
"""The tools of the recipes, on files that are generated for them: ``make recipes``.

Each test needs a tool that is too large, or not to be had everywhere, for continuous
integration; a variable of the environment says where it is.  A test whose variable is
not set fails: ``make recipes RECIPES_TESTS=kolla`` runs only those of one tool.
"""

from tests import failing_rows

failing_rows.install()
