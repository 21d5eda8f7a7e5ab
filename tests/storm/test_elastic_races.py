# SPDX-License-Identifier: Apache-2.0
"""Storms on elastic hosts; tests/long has them with the filter, too."""

from tests.functional.test_elastic import ElasticCase
from tests.storm.test_races import OPEN_HOSTS, Storm


class TestElastic(Storm, ElasticCase):
    """Elastic hosts, without the filter; few units, so that most are refused."""

    UNITS = 8

    def test_invariants_hold(self):
        self.start(*OPEN_HOSTS)
        self.check_rounds(OPEN_HOSTS)
        for host in OPEN_HOSTS:
            self.assertEqual([], self.taken(host))
