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

"""Page sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.properties.combine import Properties

if TYPE_CHECKING:
    from nova_perfvm.model import Policy, VMClass


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
    """Give ``hw:mem_page_size`` where the policy asks for a page size.

    The image stays silent: Nova refuses hw_mem_page_size beside a flavor that
    says nothing or names an exact size, so that one image could not serve both
    classes.
    """
    if vm_class.mem_page_size is None:
        return Properties()
    return Properties(flavor={const.MEM_PAGE_SIZE: vm_class.mem_page_size})
