# SPDX-License-Identifier: Apache-2.0
"""Find the class of a request."""

from nova_perfvm.facts import RequestFacts
from nova_perfvm.policy import Policy, VMClass


def resolve_class(policy: Policy, request: RequestFacts) -> VMClass | None:
    """Return the class of a request.

    The class that the flavor names; else the default class, unless the request
    is pinned: a pinned VM of no class belongs to none (None), as does one whose
    flavor names a class that is not declared.
    """
    if request.class_name is not None:
        return policy.by_name.get(request.class_name)
    if request.pinned:
        return None
    return policy.default_class


def is_former_size(policy: Policy, request: RequestFacts) -> bool:
    """Return whether only a server that runs with it may have the request's size."""
    vm_class = policy.by_name.get(request.class_name or "")
    return vm_class is not None and request.vcpus in vm_class.former_vcpus
