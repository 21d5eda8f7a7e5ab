# SPDX-License-Identifier: Apache-2.0
"""A host has no more VMs of a pinned class than the policy's max_per_host."""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import count_vms

MAX_PER_HOST: Final = Refusal(
    "host.max_per_host",
    words=lambda d: (
        f"{number_of(d['count'], 'VM')} on the host, max_per_host is {d['max']}"
    ),
    meaning="as many VMs as ``max_per_host``",
    advice="none: this is the policy",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    cap = case.vm_class.max_per_host
    if cap is None:
        return None
    mine = count_vms(case.vm_class, case.host)
    if case.vm_class.exclusive == "host":
        # Nothing else may be on such a host, so whatever is counts: five VMs of
        # 4 CPUs pin as many as one of 20.  A VM that has moved away is counted
        # until the compute's next periodic task; better refused than beside.  Of
        # those moving in, which only pins tell, two small ones may be taken for
        # one of a former size.
        count = max(mine.least, case.host.num_instances)
    else:
        count = mine.most
    return None if count < cap else MAX_PER_HOST.because(count=count, max=cap)


RULE: Final = HostRule(140, _check, (MAX_PER_HOST,), vms=("pinned",))
