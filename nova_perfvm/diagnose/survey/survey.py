# SPDX-License-Identifier: Apache-2.0
"""Show the slots and VMs that nova_perfvm would bring to a cloud without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit import Subject
from nova_perfvm.diagnose.audit.enforcing import RefusedFlavor, refused_flavors
from nova_perfvm.diagnose.audit.settings import unseen
from nova_perfvm.diagnose.capacity import Slots, cloud_capacity
from nova_perfvm.diagnose.survey import judged
from nova_perfvm.diagnose.survey.hosts import HostUse, hosts_of, pages_are_known
from nova_perfvm.diagnose.survey.propose import Proposal, ProposalError, propose
from nova_perfvm.diagnose.survey.sizes import PinnedSize, pinned_sizes
from nova_perfvm.diagnose.survey.steps import AdoptionStep, steps
from nova_perfvm.facts.snapshot import ASSUMED, Snapshot
from nova_perfvm.findings import Finding
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import number_of


@dataclass(frozen=True)
class Survey:
    """A cloud judged by a policy, a proposed or a given one.

    :ivar policy: the proposed or the given policy; None without either
    :ivar proposal: the proposed policy with its reasons; None without a proposal
    :ivar not_proposed: why the cloud gives no proposal
    :ivar taken_in: whether the cloud uses nova_perfvm already
    :ivar findings: violations of the policy today, the worst first
    :ivar refused: flavors that enforcing the policy would refuse; for a proposed
        policy, if it managed all hosts
    """

    taken_at: str
    policy: Policy | None
    proposal: Proposal | None
    not_proposed: str
    taken_in: bool
    hosts: tuple[HostUse, ...]
    sizes: tuple[PinnedSize, ...]
    findings: tuple[Finding, ...]
    gaps: tuple[Finding, ...]
    refused: tuple[RefusedFlavor, ...] = ()

    @property
    def vm_class(self) -> VMClass | None:
        """The class whose slots are counted."""
        return self.policy.pinned_classes[0] if self.policy else None

    @property
    def slots(self) -> Slots:
        """The slots of the class on all hosts together."""
        hosts = [host.slots for host in self.hosts if host.slots]
        return next(iter(cloud_capacity(hosts)), Slots("", "", 0, 0, 0))

    @property
    def possible(self) -> int:
        """The further slots that hosts without dedicated CPUs would have.

        Each host empty and configured for the class.
        """
        return sum(host.to_configure for host in self.hosts)

    @property
    def to_convert(self) -> dict[str, int]:
        """{host in service: slots that it would gain by being configured}."""
        return {
            host.view.host: host.to_configure
            for host in self.hosts
            if host.to_configure and host.view.state == "up"
        }

    def steps(
        self, emptied: Sequence[str], max_ratio: float | None = None
    ) -> tuple[AdoptionStep, ...]:
        """Return the steps from the cloud as it is to the first VMs under the policy.

        :param emptied: names of hosts that can be emptied, in order
        :param max_ratio: by which they are emptied; None for Placement's
        """
        policy = self.policy
        return tuple(steps(policy, self.hosts, emptied, max_ratio)) if policy else ()


def survey(
    snapshot: Snapshot, policy: Policy | None = None, vcpus: int | None = None
) -> Survey:
    """Survey a cloud.

    :param policy: the policy to judge by; None to propose one for the cloud
    :param vcpus: vCPUs of the proposed policy's class; None to choose by the cloud
    :raises ProposalError: when no host has room for the given vCPUs, or the given
        policy has no pinned class
    """
    proposal, not_proposed = None, ""
    if policy is None:
        try:
            proposal = propose(snapshot, vcpus)
            policy = proposal.policy
        except ProposalError as exc:
            if vcpus is not None:
                raise
            not_proposed = str(exc)
    elif not policy.pinned_classes:
        raise ProposalError(
            "the policy has no class with cpu_policy: dedicated, so that there are no "
            "slots to count: leave --policy out, or name another"
        )
    found: tuple[Finding, ...] = ()
    refused: tuple[RefusedFlavor, ...] = ()
    seen, judging = snapshot, policy
    if policy is not None:
        judging, seen = judged.as_if(policy, snapshot)
        found = judged.findings(policy, snapshot)
        # A proposed policy manages labelled hosts only; show the effect on all hosts.
        enforced = replace(policy, managed_hosts="all") if proposal else policy
        refused = refused_flavors(Subject(enforced, snapshot))
    hosts = hosts_of(judging, seen)
    return Survey(
        taken_at=snapshot.taken_at,
        policy=policy,
        proposal=proposal,
        not_proposed=not_proposed,
        taken_in=judged.is_taken_in(snapshot),
        hosts=hosts,
        sizes=pinned_sizes(snapshot),
        findings=found,
        gaps=tuple(_gaps(snapshot, hosts, policy)),
        refused=refused,
    )


def _gaps(
    snapshot: Snapshot, hosts: Sequence[HostUse], policy: Policy | None
) -> Iterator[Finding]:
    yield from unseen(snapshot)
    tell = "on a controller, --from-nova-db"
    without = sum(not host.view.facts.cells for host in hosts)
    assumed = sum(host.view.compute.cells_source == ASSUMED for host in hosts)
    if without or assumed:
        yield Finding.of(
            codes.NOT_SEEN,
            "NUMA nodes, CPU sets",
            f"no API shows them: the nodes of {assumed} of "
            f"{number_of(len(hosts), 'host')} are assumed to be alike; hosts without "
            f"known NUMA nodes, whose slots are not counted: {without}",
            tell,
        )
    pages = policy.pinned_classes[0].mem_page_size if policy else None
    if pages and not pages_are_known(snapshot):
        yield Finding.of(
            codes.NOT_SEEN,
            "memory pages",
            f"no API shows which hosts have pages of {pages}: slots are counted by "
            "memory of any kind",
            tell,
        )
    yield Finding.of(
        codes.NOT_SEEN,
        "nova.conf, placement.conf",
        "no API shows the schedulers' filters, nor how often Placement retries",
        "nova-perfvm-status upgrade check on a controller; openstack perfvm audit "
        "--placement-conf FILE",
    )
