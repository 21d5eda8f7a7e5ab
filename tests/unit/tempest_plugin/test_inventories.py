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

import testtools

from nova_perfvm.tempest_plugin import inventories


class ReservedTest(testtools.TestCase):
    def test_of_shared_cpus(self):
        found = {"VCPU": {"total": 8, "reserved": 2}, "MEMORY_MB": {"reserved": 512}}
        self.assertEqual(2, inventories.reserved_cpus(found))

    def test_of_pinned_cpus_alone(self):
        self.assertEqual(0, inventories.reserved_cpus({"PCPU": {"reserved": 0}}))
