# SPDX-License-Identifier: Apache-2.0
"""Thousands of verdicts on what real clouds have, beside nova-scheduler's.

PERFVM_RANDOM_SEED (7) says which are drawn, PERFVM_DRAWN_VERDICTS (5000) how many.
"""

import os

from tests.functional import test_drawn

VERDICTS = int(os.environ.get("PERFVM_DRAWN_VERDICTS", "5000"))


class TestDryRun(test_drawn.TestDryRun):
    VERDICTS = VERDICTS
    HOSTS = 12
    CHAPTERS = 6
    CASES = 10
    EACH = True
    PATIENCE = 12


class TestModel(test_drawn.TestModel):
    VERDICTS = VERDICTS
    HOSTS = 12
    CHAPTERS = 6
    CASES = 10
    PATIENCE = 12
