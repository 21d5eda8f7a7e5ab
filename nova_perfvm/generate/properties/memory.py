# SPDX-License-Identifier: Apache-2.0
"""Page sizes."""

from __future__ import annotations

from nova_perfvm import constants as const
from nova_perfvm.generate.properties.combine import Properties
from nova_perfvm.policy import Policy, VMClass


def generate(_policy: Policy, vm_class: VMClass) -> Properties:
    """Return ``hw:mem_page_size`` where the policy asks for a page size.

    The image stays silent: Nova refuses hw_mem_page_size beside a flavor that
    says nothing or names an exact size, so that one image could not serve both
    classes.
    """
    if vm_class.mem_page_size is None:
        return Properties()
    return Properties(flavor={const.MEM_PAGE_SIZE: vm_class.mem_page_size})
