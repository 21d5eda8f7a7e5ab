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
# (option, code for a wrong value, code if the file was not named).
_FOR_ELASTIC: Final = (
    (ISOLATED_AGGREGATES, codes.ISOLATION, codes.ISOLATION_UNKNOWN),
    (FALLBACK_QUERY, codes.FALLBACK_QUERY, codes.FALLBACK_UNKNOWN),
)


def check_filters(subject: Subject) -> Iterator[Finding]:
    """Judge the filters that nova-scheduler has enabled."""
    name = options.ENABLED_FILTERS
    if subject.nova_settings is None:
        command = "openstack perfvm policy check --nova-conf FILE"
        yield _unknown(name, codes.FILTERS_UNKNOWN, command)
        return
    enabled = subject.nova_settings.get(name.key, "").split(",")
    names = [word.strip() for word in enabled]
    yield from enabled_filters.judge(names, subject.policy)


def check_enforced(subject: Subject) -> Iterator[Finding]:
    """Judge whether nova-scheduler enforces this policy."""
    found = subject.nova_settings
    if found is None or subject.enforced is None:
        command = "openstack perfvm policy check --nova-conf FILE"
        yield _unknown(options.POLICY, codes.ENFORCED_UNKNOWN, command)
        return
    yield from options.judge_mode(found.get(("perfvm", "mode"), "enforce"))
    path = found.get(options.POLICY.key)
    yield from options.judge_policy(path, subject.enforced, subject.policy)


def check_elastic(subject: Subject) -> Iterator[Finding]:
    """Judge the options that elastic hosts need."""
    if not (scheme_of(subject.policy).enrolls or subject.elastic):
        return
    # Pinned VMs come to hosts without cpu sets only by the fallback query.
    fallback = any(host.root.mode == "open" for host in subject.elastic)
    for setting, wrong, unknown in _FOR_ELASTIC:
        if subject.nova_settings is None:
            command = "openstack perfvm preflight --nova-conf FILE"
            yield _unknown(setting, unknown, command)
            continue
        fault = setting.fault(subject.nova_settings.get(setting.key))
        if fault and (fallback or wrong != codes.FALLBACK_QUERY):
            found = Finding.of(wrong, "nova.conf", fault, setting.remedy)
            # For other schemes a missing fallback query is a warning; here no pinned VM
            # finds a host without it.
            yield found._replace(level=Level.FAILURE)
    if scheme_of(subject.policy).steers and subject.nova_settings is not None:
        fault = NUMA_PACKING.fault(subject.nova_settings.get(NUMA_PACKING.key))
        if fault:
            remedy = NUMA_PACKING.remedy
            yield Finding.of(codes.NUMA_PACKING, "nova.conf", fault, remedy)


def check_retries(subject: Subject) -> Iterator[Finding]:
    """Judge whether Placement may grant more than its inventories have."""
    if subject.placement_settings is None:
        yield _unknown(
            options.RETRIES,
            codes.RETRY_COUNT_UNKNOWN,
            "openstack perfvm audit --placement-conf FILE",
        )
        return
    once = options.RETRIES
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
