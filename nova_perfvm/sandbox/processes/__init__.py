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

"""A real OpenStack of separate processes on one Linux machine, for trying and tests.

``sandbox.Sandbox`` starts and stops it.  What is pretended is the hypervisor
(``hypervisor``) and the network below Neutron (``binding``); these two, and
nothing else here, run in OpenStack's own environment and may import it.
"""
