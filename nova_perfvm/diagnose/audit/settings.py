# SPDX-License-Identifier: Apache-2.0
"""Check options of Nova and Placement that no API shows; report unread parts."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import Finding, Level
from nova_perfvm.generate import options
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.settings import (
    FALLBACK_QUERY,
    ISOLATED_AGGREGATES,
    NUMA_PACKING,
    PLACEMENT,
    Setting,
)
from nova_perfvm.rules import enabled_filters

# The command that shows the cause of a gap, by the gap's subject.
_FIND_OUT: Final = {
    **dict.fromkeys(("cells", "hypervisors"), "nova-manage cell_v2 list_cells"),
    "pins": "openstack role assignment list --names --user USER",
}
_CHECK: Final = "openstack perfvm policy check --nova-conf FILE"
_PREFLIGHT: Final = "openstack perfvm preflight --nova-conf FILE"


def check_filters(subject: Subject) -> Iterator[Finding]:
    """Judge the filters that nova-scheduler has enabled."""
    name = options.ENABLED_FILTERS
    if subject.nova_settings is None:
        yield _unknown(name, codes.FILTERS_UNKNOWN, _CHECK)
        return
    enabled = subject.nova_settings.get(name.key, "").split(",")
    names = [word.strip() for word in enabled]
    yield from enabled_filters.judge(names, subject.policy)


def check_enforced(subject: Subject) -> Iterator[Finding]:
    """Judge whether nova-scheduler enforces this policy."""
    found = subject.nova_settings
    if found is None or subject.enforced is None:
        yield _unknown(options.POLICY, codes.ENFORCED_UNKNOWN, _CHECK)
        return
    yield from options.judge_mode(found.get(("perfvm", "mode"), "enforce"))
    path = found.get(options.POLICY.key)
    yield from options.judge_policy(path, subject.enforced, subject.policy)


def check_elastic(subject: Subject) -> Iterator[Finding]:
    """Judge the options that elastic hosts need."""
    scheme = scheme_of(subject.policy)
    if not (scheme.enrolls or subject.elastic):
        return
    if subject.nova_settings is None:
        yield _unknown(ISOLATED_AGGREGATES, codes.ISOLATION_UNKNOWN, _PREFLIGHT)
        yield _unknown(FALLBACK_QUERY, codes.FALLBACK_UNKNOWN, _PREFLIGHT)
        return
    needed = [(ISOLATED_AGGREGATES, codes.ISOLATION, Level.FAILURE)]
    # Pinned VMs come to hosts without cpu sets only by the fallback query, whose code
    # is a warning for other hosts.
    if any(host.root.mode == "open" for host in subject.elastic):
        needed.append((FALLBACK_QUERY, codes.FALLBACK_QUERY, Level.FAILURE))
    if scheme.steers:
        needed.append((NUMA_PACKING, codes.NUMA_PACKING, Level.WARNING))
    for setting, code, level in needed:
        fault = setting.fault(subject.nova_settings.get(setting.key))
        if fault:
            found = Finding.of(code, "nova.conf", fault, setting.remedy)
            yield found._replace(level=level)


def check_retries(subject: Subject) -> Iterator[Finding]:
    """Judge whether Placement may grant more than its inventories have."""
    once = options.RETRIES
    if subject.placement_settings is None:
        command = "openstack perfvm audit --placement-conf FILE"
        yield _unknown(once, codes.RETRY_COUNT_UNKNOWN, command)
        return
    fault = once.fault(subject.placement_settings.get(once.key))
    if fault:
        remedy = (
            f"crudini --set /etc/placement/placement.conf {' '.join(once.key)} "
            f"{' '.join(once.values)}  # and restart {once.service}"
        )
        yield Finding.of(codes.RETRY_COUNT, "placement.conf", fault, remedy)


def _unknown(setting: Setting, code: str, remedy: str) -> Finding:
    file = "placement.conf" if setting.service == PLACEMENT else "nova.conf"
    return Finding.of(code, file, f"{setting}: no API shows it", remedy)


def check_cells(subject: Subject) -> Iterator[Finding]:
    """List unreachable cells; their hosts were not read."""
    return (found for found in check_gaps(subject) if found.code == codes.CELL_DOWN)


def check_gaps(subject: Subject) -> Iterator[Finding]:
    """List the gaps of the snapshot."""
    return unseen(subject.snapshot)


def unseen(snapshot: Snapshot) -> Iterator[Finding]:
    """Turn the gaps of a snapshot into findings."""
    for gap in snapshot.gaps:
        what, _, why = gap.partition(": ")
        remedy = _FIND_OUT.get(what, "openstack catalog list")
        code = codes.CELL_DOWN if what == "cells" else codes.NOT_SEEN
        yield Finding.of(code, what, why, remedy)
