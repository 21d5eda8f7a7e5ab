# SPDX-License-Identifier: Apache-2.0
"""Find faults that break, or will break, the separation of classes on elastic hosts."""

from collections.abc import Iterable, Iterator
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.enrolled_slots import as_enrolled, enrolled_slots
from nova_perfvm.diagnose.residents import class_or_misfits, shares_as_enrolled
from nova_perfvm.facts.flavor_facts import server_facts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.placement_request import elastic_traits, required_traits
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.findings import Finding
from nova_perfvm.placement.commands import enroll
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request, describe
from nova_perfvm.rules.request.contract import CODES

# Resource classes of the root provider that the children divide.  After the enrolment a
# kernel may reserve more memory: this much of an excess is tolerated.
_OF_ROOT: Final = {const.RC_CELL_CPU: const.PCPU, const.RC_CELL_MEMORY: "MEMORY_MB"}
_ROUGHLY: Final = 1.02


def check_hosts(subject: Subject) -> Iterator[Finding]:
    """List the differences between elastic hosts and hosts as enrolling makes them."""
    for host in subject.elastic_hosts.values():
        for code, faults in (
            (codes.HOST_NOT_ISOLATED, _membership_faults(subject, host)),
            (codes.TRAIT_DIFFERS, _enrolment_faults(subject.policy, host)),
            (codes.CHILDREN_DIFFER, _children_faults(subject.policy, host)),
        ):
            for fault in faults:
                yield Finding.of(
                    code, host.host, fault, enroll(subject.policy, host.host)
                )


def _membership_faults(subject: Subject, host: HostView) -> Iterator[str]:
    members = _list(a.name for a in host.isolated_by)
    if host.enrolled and not host.isolated_by:
        yield f"{host.host} is enrolled, but in no isolated aggregate"
    elif host.isolated_by and not host.closed:
        yield f"Placement does not know that {host.host} is in {members}"
    if host.isolated_by and not host.enrolled and not subject.is_wanted(host.compute):
        yield f"{host.host} is in {members}, but not enrolled"
    if host.compute.interrupted:
        yield f"{host.host}: an enroll was cut off, nova-compute is off"


def _enrolment_faults(policy: Policy, host: HostView) -> Iterator[str]:
    trait = scheme_of(policy).enrolled_trait(policy)
    has = host.root.elastic_traits.union(*(a.elastic_traits for a in host.isolated_by))
    if host.enrolled and has != {trait}:
        yield (
            f"{host.host} is enrolled for VMs that ask for {_list(has)}, and "
            f"flavors of this policy ask for {trait}"
        )


def _children_faults(policy: Policy, host: HostView) -> Iterator[str]:
    own = as_enrolled(policy, host)
    count = len(host_scheme_of(own).children(own, host, 0))
    if fault := host_scheme_of(policy).mixed_pages(policy, host):
        yield fault
    wrong = len(host.children) != count or enrolled_slots(own, host) is None
    for provider in host.strayed:
        yield f"{provider.name} is outside the tree of {host.host}, and not empty"
    for provider in host.children if scheme_of(own).steers else ():
        if not host.is_own(provider):
            yield (
                f"nova-scheduler does not know {provider.name}, which was created for "
                f"another provider than the present one of {host.host}"
            )
    for name, of in _OF_ROOT.items():
        total, most = sum(c.total(name) for c in host.children), host.root.total(of)
        if total > _ROUGHLY * most:
            yield (
                f"{host.host}: its child providers have {total} {name}, and its own "
                f"provider has {most} {of}"
            )
    if wrong and (host.enrolled or host.children):
        yield (
            f"{host.host}: number ({len(host.children)}, should be {count}), names, "
            "inventories or traits of its child providers differ from the policy's"
        )


def check_residents(subject: Subject) -> Iterator[Finding]:
    """List the servers that lack units, or hold an invalid amount of them."""
    scheme = host_scheme_of(subject.policy)
    for host in subject.elastic_hosts.values():
        code, remedy = codes.UNITS_LACKING, codes.HEAL
        if not host.enrolled:
            # The host may have no children yet: enroll makes them first.
            remedy = enroll(subject.policy, host.host, "--backfill")
            if subject.is_wanted(host.compute):
                code = codes.TO_BACKFILL
        shares = shares_as_enrolled(subject.policy, host)
        for consumer in shares.lacking:
            words = f"{host.describe(consumer)} on {host.host} has no {scheme.noun}"
            yield Finding.of(code, host.host, words, remedy)
        for fault in shares.faults:
            yield Finding.of(code, host.host, fault, remedy)


def check_flavors(subject: Subject) -> Iterator[Finding]:
    """List the servers whose flavors bring them to no enrolled host.

    Servers whose flavors ask for hosts with another number of children get a code of
    their own.
    """
    policy = subject.policy
    if not scheme_of(policy).enrolls:
        return
    for server in subject.snapshot.servers:
        # Nova does not move servers that never came to a host.
        if not server.known or not server.built:
            continue
        where, code = server.host or "no host", codes.FLAVOR_LEFT_BEHIND
        fault = left_behind_fault(policy, server)
        if not fault and (
            server.host in subject.elastic_hosts or subject.managed(server.host or "")
        ):
            code, fault = codes.FLAVOR_WITHOUT_UNITS, _flavor_fault(policy, server)
        if fault:
            remedy = subject.resize(server)
            yield Finding.of(code, str(server), f"on {where}: {fault}", remedy)


def _flavor_fault(policy: Policy, server: Server) -> str:
    """Return how a server's flavor differs from its class's contract; else empty.

    Empty for servers that do not match their class, too: another check reports them.
    """
    name, misfits = class_or_misfits(policy, server)
    if misfits:
        return ""
    if name is None:
        return "its flavor pins CPUs and names no class of the policy"
    request = server_facts(server)._replace(class_name=name)
    reasons = check_request(policy, request)
    return "; ".join(describe(reason) for reason in reasons if reason.code in CODES)


def left_behind_fault(policy: Policy, server: Server) -> str:
    """Return the fault of a flavor that no elastic host of today accepts; else empty.

    Servers keep the flavor that they were made with, so a new number of children per
    host leaves them behind.
    """
    trait = scheme_of(policy).enrolled_trait(policy)
    asked = elastic_traits(required_traits(server.extra_specs)) - {trait}
    if not asked:
        return ""
    return (
        f"its flavor asks for {_list(asked)}, and hosts of this policy have {trait}: "
        "Nova migrates, evacuates or unshelves it to no host enrolled for this policy"
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
