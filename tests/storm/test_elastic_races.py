# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Storms on elastic hosts."""

from nova_perfvm.sandbox.embedded import DEFAULT_FILTERS
from tests.functional.test_elastic import ElasticCase
from tests.storm.test_races import OPEN_HOSTS, Storm


class TestElastic(Storm, ElasticCase):
    """Elastic hosts, without the filter; few units, so that most are refused."""

    CHANGES = {"elastic": {"units": 8}}  # noqa: RUF012

    def test_invariants_hold(self):
        self.start(*OPEN_HOSTS)
        self.check_rounds(OPEN_HOSTS)
        for host in OPEN_HOSTS:
            self.assertEqual([], self.taken(host))


class TestElasticWithFilter(TestElastic):
    FILTERS = DEFAULT_FILTERS
