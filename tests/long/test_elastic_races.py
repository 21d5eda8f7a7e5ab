# SPDX-License-Identifier: Apache-2.0
"""The storm on elastic hosts, with the filter, which turns the order of claims."""

from nova_perfvm.sandbox.embedded import DEFAULT_FILTERS
from tests.storm import test_elastic_races


class TestElasticWithFilter(test_elastic_races.TestElastic):
    FILTERS = DEFAULT_FILTERS
