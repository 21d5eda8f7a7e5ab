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

"""The policy as values: frozen, pure, without any input or output."""

from nova_perfvm.model.classes import (
    PAGE_SIZES_KB,
    Disk,
    FlavorSize,
    FlavorTemplate,
    VMClass,
)
from nova_perfvm.model.invariants import advice, problems
from nova_perfvm.model.limits import even_share, memory_fault, name_fault
from nova_perfvm.model.policy import SCHEMA_VERSION, Policy
from nova_perfvm.model.room import cell_slots, groups_of, shape_slots
from nova_perfvm.model.shapes import HostShape

__all__ = [
    "PAGE_SIZES_KB",
    "SCHEMA_VERSION",
    "Disk",
    "FlavorSize",
    "FlavorTemplate",
    "HostShape",
    "Policy",
    "VMClass",
    "advice",
    "cell_slots",
    "even_share",
    "groups_of",
    "memory_fault",
    "name_fault",
    "problems",
    "shape_slots",
]
