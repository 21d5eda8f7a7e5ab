# SPDX-License-Identifier: Apache-2.0
"""The order of hosts beside nova-scheduler's, in 501 requests."""

from tests.functional import test_ranking


class LongRankingTest(test_ranking.RankingTest):
    STATES = 167
    PATIENCE = 4
