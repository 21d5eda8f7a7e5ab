# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: what preflight looks at, said as findings."""

from collections.abc import Iterator
from shlex import quote
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import preflight
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.residents import class_or_misfits
from nova_perfvm.facts.elastic_host import ElasticHost
from nova_perfvm.findings import Finding
from nova_perfvm.policy import Policy

_HOST_FAULTS: Final = (
    (codes.HOST_NOT_ISOLATED, lambda _, host: preflight.membership_faults(host)),
    (codes.TRAIT_DIFFERS, preflight.enrolment_faults),
    (codes.CHILDREN_DIFFER, preflight.children_faults),
)


def check(subject: Subject) -> Iterator[Finding]:
    """List what breaks, or will break, the exclusion on elastic hosts."""
    policy = subject.policy
    if policy.placement != "units":
        return
    view = subject.elastic
    for host in view.hosts:
        yield from _host(policy, host)
    for stray in view.stray:
        remedy = f"openstack resource provider list --required {stray[1]}"
        fault = preflight.describe_stray(stray)
        yield Finding(codes.HOST_NOT_ISOLATED, "Placement", fault, remedy)
    ours = {host.host for host in view.hosts}
    for server in view.servers:
        if server.host is None or not (
            server.host in ours or subject.managed(server.host)
        ):
            continue
        # What is not of its class is told as that, whatever its units.
        _, misfits = class_or_misfits(policy, server)
        lacking = iter(()) if misfits else preflight.flavor_faults(policy, server)
        for code, found in (
            (codes.FLAVOR_WITHOUT_UNITS, lacking),
            (
                codes.FLAVOR_LEFT_BEHIND,
                preflight.left_behind_faults(policy, server, view.hosts),
            ),
        ):
            for fault in found:
                yield Finding(code, str(server), fault, subject.resize(server))


def _host(policy: Policy, host: ElasticHost) -> Iterator[Finding]:
    enroll = f"openstack perfvm host enroll {quote(host.host)}"
    for code, faults in _HOST_FAULTS:
        for fault in faults(policy, host):
            yield Finding(code, host.host, fault, enroll)
    # A host that is not enrolled may have no children yet, which come first.
    give = codes.HEAL if host.enrolled else f"{enroll} --backfill"
    for fault in preflight.resident_faults(policy, host):
        yield Finding(codes.UNITS_LACKING, host.host, fault, give)
