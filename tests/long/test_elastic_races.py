# SPDX-License-Identifier: Apache-2.0
"""Requests at once on elastic hosts, with the filter, which turns claims' order."""

from concurrent import futures

from tests.cloud import DEFAULT_FILTERS
from tests.functional.elastic import SameMoment
from tests.functional.test_elastic import HIGH, ElasticCase
from tests.storm import test_elastic_races


class TestElasticWithFilter(test_elastic_races.TestElastic):
    FILTERS = DEFAULT_FILTERS


class TestAtTheSameMoment(ElasticCase):
    FILTERS = DEFAULT_FILTERS

    def test_two_requests_for_two(self):
        self.start("e1", "e2")
        with SameMoment(2), futures.ThreadPoolExecutor() as pool:
            requests = [pool.submit(self.cloud.boot, HIGH, count=2) for _ in range(2)]
            servers = [server for found in requests for server in found.result()]
        self.assertEqual(["ACTIVE"] * 4, [server.status for server in servers])
        for host in ("e1", "e2"):
            self.assertEqual({"a": [1000], "b": [1000]}, self.units(host))
