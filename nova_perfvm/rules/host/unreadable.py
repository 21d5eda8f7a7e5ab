# SPDX-License-Identifier: Apache-2.0
"""The scheduler can read the facts that nova-compute reports of the host."""

from typing import Final

from nova_perfvm.facts import HostFacts, Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

UNREADABLE: Final = Refusal(
    "host.unreadable",
    words=lambda d: f"Nova's data about the host cannot be read: {d['error']}",
    meaning=(
        "Nova's data about the host cannot be read: a field is missing or makes no "
        "sense, a newer nova-compute wrote it, or a database fails"
    ),
    advice=(
        "look for 'cannot read host' in nova-scheduler's log, which has the error once "
        "for each host. If the error's name begins with DB, see that the database of "
        "the host's cell answers; otherwise restart nova-compute, which reports again"
    ),
)


def fault(host: HostFacts) -> str:
    """Return why a host's facts are unreadable or impossible; empty if they are not."""
    if host.vcpus_used < 0 or host.num_instances < 0:
        # Negative figures would hide VMs in the estimate of unpinned VMs.
        return f"{host.vcpus_used} vCPUs used, {host.num_instances} instances"
    return host.unreadable


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    error = fault(case.host)
    return UNREADABLE.because(error=error) if error else None


RULE: Final = HostRule(5, _check, (UNREADABLE,))
