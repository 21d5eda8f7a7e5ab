# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: what preflight looks at, said as findings."""

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote
from typing import Final

from nova_perfvm.diagnose import preflight
from nova_perfvm.diagnose.audit import finding as codes
from nova_perfvm.diagnose.audit.finding import Finding
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.preflight import CloudView
from nova_perfvm.diagnose.views import cloud_view

_CHECKS: Final = (
    (codes.HOST_NOT_ISOLATED, preflight.check_membership, ""),
    (codes.TRAIT_DIFFERS, preflight.check_enrolment, ""),
    (codes.CHILDREN_DIFFER, preflight.check_children, ""),
    (codes.UNITS_LACKING, preflight.check_residents, " --backfill"),
)

_SERVER_CHECKS: Final = (
    (codes.FLAVOR_WITHOUT_UNITS, preflight.check_flavors),
    (codes.FLAVOR_LEFT_BEHIND, preflight.check_left_behind),
)


def check(subject: Subject) -> Iterator[Finding]:
    """List what breaks, or will break, the exclusion on elastic hosts."""
    policy = subject.policy
    if policy.placement != "units":
        return
    view = cloud_view(subject.snapshot, subject.placement_settings)
    for host in view.hosts:
        narrowed = replace(view, hosts=(host,), stray=())
        for code, judge, option in _CHECKS:
            for detail in judge(policy, narrowed).details:
                remedy = f"openstack perfvm host enroll {quote(host.host)}{option}"
                yield Finding(code, host.host, detail, remedy)
    for stray in view.stray:
        narrowed = replace(view, hosts=(), stray=(stray,))
        for detail in preflight.check_membership(policy, narrowed).details:
            remedy = f"openstack resource provider list --required {stray[1]}"
            yield Finding(codes.HOST_NOT_ISOLATED, "Placement", detail, remedy)
    yield from _servers(subject, view)


def _servers(subject: Subject, view: CloudView) -> Iterator[Finding]:
    """List servers that their flavors bring to no elastic host."""
    ours = {host.host for host in view.hosts}
    for server in view.servers:
        if server.host is None or not (
            server.host in ours or subject.managed(server.host)
        ):
            continue
        narrowed = replace(view, servers=(server,))
        for code, judge in _SERVER_CHECKS:
            for detail in judge(subject.policy, narrowed).details:
                yield Finding(code, str(server), detail, subject.resize(server))
