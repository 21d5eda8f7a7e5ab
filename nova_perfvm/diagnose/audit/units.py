# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: what preflight looks at, said as findings."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Final

from nova_perfvm.diagnose import preflight
from nova_perfvm.diagnose.audit import finding as codes
from nova_perfvm.diagnose.audit.finding import Finding
from nova_perfvm.diagnose.views import cloud_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.diagnose.audit.subject import Subject

_CHECKS: Final = (
    (codes.HOST_NOT_ISOLATED, preflight.check_membership, ""),
    (codes.CHILDREN_DIFFER, preflight.check_children, ""),
    (codes.UNITS_LACKING, preflight.check_residents, " --backfill"),
)


def check(subject: Subject) -> Iterator[Finding]:
    """List what breaks, or will break, the exclusion on elastic hosts."""
    policy = subject.policy
    if policy.placement != "units":
        return
    view = cloud_view(subject.snapshot, subject.placement_settings)
    for host in view.hosts:
        alone = replace(view, hosts=(host,), stray=())
        for code, judge, option in _CHECKS:
            for detail in judge(policy, alone).details:
                remedy = f"openstack perfvm host enroll {quote(host.host)}{option}"
                yield Finding(code, host.host, detail, remedy)
    for detail in preflight.check_membership(policy, replace(view, hosts=())).details:
        remedy = "openstack resource provider list --required CUSTOM_PERFVM_ELASTIC"
        yield Finding(codes.HOST_NOT_ISOLATED, "Placement", detail, remedy)
    ours = {host.host for host in view.hosts}
    for server in view.servers:
        if server.host is None or not (
            server.host in ours or subject.managed(server.host)
        ):
            continue
        alone = replace(view, servers=(server,))
        for detail in preflight.check_flavors(policy, alone).details:
            remedy = subject.resize(server)
            yield Finding(codes.FLAVOR_WITHOUT_UNITS, str(server), detail, remedy)
