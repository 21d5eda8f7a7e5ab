# SPDX-License-Identifier: Apache-2.0
"""Some rows of the matrix, drawn by PERFVM_MATRIX_SEED; tests/matrix has more."""

import os

from tests.functional import base
from tests.matrix import factors, rows

SEED = int(os.environ.get("PERFVM_MATRIX_SEED", "1"))


@rows.each(factors.sample(SEED))
class TestSample(base.FunctionalTest):
    CLOUD = None
