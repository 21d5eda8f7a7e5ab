# SPDX-License-Identifier: Apache-2.0
"""Judge a cloud by a policy, although the cloud does not know the policy yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import Finding
from nova_perfvm.placement.schemes import SCHEMES, is_ours
from nova_perfvm.policy import Policy
from nova_perfvm.rules.host.classless import CLASSLESS_PINNED

# Codes that every cloud gets before its adoption, or that the report shows elsewhere.
_NOT_YET = frozenset(
    {
        codes.FLAVOR_DIFFERS,
        codes.RETRY_COUNT_UNKNOWN,
        codes.NOT_SEEN,
        codes.CELL_DOWN,
        codes.FLAVOR_CHANGED,
    }
)


def is_taken_in(snapshot: Snapshot) -> bool:
    """Return whether nova_perfvm's labels, hosts, or most pinned VMs exist already.

    Unused flavors may exist in any cloud, and a few VMs on hosts without configuration
    may be a trial: both are ignored.
    """
    if any(aggregate.labels for aggregate in snapshot.aggregates) or any(
        is_ours(name)
        for provider in snapshot.providers
        for name in (*provider.inventories, *provider.traits)
    ):
        return True
    named = [const.CLASS_KEY in s.extra_specs for s in snapshot.servers if s.owns_cpus]
    return 2 * sum(named) > len(named)


def as_if(policy: Policy, snapshot: Snapshot) -> tuple[Policy, Snapshot]:
    """Return a policy and a snapshot in which the cloud is treated as adopted.

    Pinned servers and flavors of a class's size are treated as members of the class,
    and each host as managed by the policy.  The returned policy asks Placement for
    nothing that only enrolled or configured hosts have.  An adopted cloud is returned
    unchanged.
    """
    if is_taken_in(snapshot):
        return policy, snapshot
    names = {
        size: vm_class.name
        for vm_class in reversed(policy.pinned_classes)
        for size in vm_class.sizes
    }
    nothing = next(scheme for scheme in SCHEMES.values() if not scheme.counts)
    return replace(policy, placement=nothing.name, managed_hosts="all"), replace(
        snapshot,
        servers=tuple(
            replace(server, extra_specs=_named(server.extra_specs, names, server.vcpus))
            if server.owns_cpus
            else server
            for server in snapshot.servers
        ),
        flavors=tuple(
            replace(flavor, extra_specs=_named(flavor.extra_specs, names, flavor.vcpus))
            if flavor.extra_specs.get(const.CPU_POLICY) == "dedicated"
            else flavor
            for flavor in snapshot.flavors
        ),
    )


def _named(
    extra_specs: Mapping[str, str], names: Mapping[int, str], vcpus: int
) -> Mapping[str, str]:
    if vcpus not in names:
        return extra_specs
    return {const.CLASS_KEY: names[vcpus], **extra_specs}


def findings(policy: Policy, snapshot: Snapshot) -> tuple[Finding, ...]:
    """Return the violations of a policy today, the worst first.

    :param snapshot: the real cloud, not that of :func:`as_if`
    """
    found = []
    for finding in audit.run(audit.Subject(*as_if(policy, snapshot))).findings:
        if finding.code in _NOT_YET:
            continue
        # Such a VM should stay on a host without a label; the remedy (a resize) is
        # wrong here.
        classless = finding.code == CLASSLESS_PINNED.audit
        found.append(finding._replace(remedy="") if classless else finding)
    return tuple(found)
