# SPDX-License-Identifier: Apache-2.0
"""A host is refused if what its compute has reported of it cannot be read.

The other hosts are judged.
"""

from typing import Final

from nova_perfvm.facts import HostFacts, Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

UNREADABLE: Final = Refusal(
    "host.unreadable",
    words=lambda d: f"what Nova knows of the host cannot be read: {d['error']}",
    meaning=(
        "what Nova knows of the host cannot be read: a field that is missing or makes "
        "no sense, a report of a newer nova-compute, or a database that fails"
    ),
    advice=(
        "look for 'cannot read host' in nova-scheduler's log, which has the error once "
        "for each host. If the error's name begins with DB, see that the database of "
        "the host's cell answers; otherwise restart nova-compute, which reports anew"
    ),
)


def fault(host: HostFacts) -> str:
    """Return what cannot be so of what is known of a host; empty if all can."""
    if host.vcpus_used < 0 or host.num_instances < 0:
        # They would hide as many VMs.
        return f"{host.vcpus_used} vCPUs used, {host.num_instances} instances"
    return host.unreadable


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    error = fault(case.host)
    return UNREADABLE.because(error=error) if error else None


RULE: Final = HostRule(5, _check, (UNREADABLE,))
