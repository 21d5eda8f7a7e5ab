# SPDX-License-Identifier: Apache-2.0
"""Find the class of a request."""

from nova_perfvm.facts import RequestFacts
from nova_perfvm.policy import Policy, VMClass


def resolve_class(policy: Policy, request: RequestFacts) -> VMClass | None:
    """Return the class that the flavor names, or the default class if it names none.

    None for a pinned request whose flavor names no class, and for a flavor that names
    a class that the policy does not declare.
    """
    if request.class_name is not None:
        return policy.by_name.get(request.class_name)
    if request.pinned:
        return None
    return policy.default_class


def is_former_size(policy: Policy, request: RequestFacts) -> bool:
    """Return whether the request has a former size, which only running servers keep."""
    vm_class = policy.by_name.get(request.class_name or "")
    return vm_class is not None and request.vcpus in vm_class.former_vcpus
