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
    meaning="the host has ``max_per_host`` VMs of the class",
    advice="none: the policy says so",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    cap = case.vm_class.max_per_host
    if cap is None:
        return None
    mine = count_vms(case.vm_class, case.host)
    if case.vm_class.exclusive == "host":
        # A host for ``exclusive: host`` runs only VMs of the class, so every instance
        # counts: five VMs of 4 CPUs pin as many as a VM of 20.  A VM that has moved
        # away counts until the compute's next periodic task: a needless refusal is
        # better than too many VMs.  num_instances lacks VMs that are moving in; the
        # count by pins may take two small ones for one of a former size.
        count = max(mine.least, case.host.num_instances)
    else:
        count = mine.most
    return None if count < cap else MAX_PER_HOST.because(count=count, max=cap)


RULE: Final = HostRule(140, _check, (MAX_PER_HOST,), vms=("pinned",))
