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

"""Two VM classes for Nova, from one declared policy.

High-performance VMs own their physical CPUs inside one NUMA node; general VMs
share theirs.  The policy is declared once (``perfvm.yaml``) and everything
else -- the scheduler's verdict, flavors, image properties -- follows from it.
"""
