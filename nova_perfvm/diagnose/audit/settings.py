# SPDX-License-Identifier: Apache-2.0
"""Options of Nova and Placement that no API shows, and what could not be seen."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import overgranting
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding, Level
from nova_perfvm.generate import options
from nova_perfvm.generate.options import Setting
from nova_perfvm.placement.schemes import scheme_of

# What shows why Nova cannot ask a cell's database.
_FIND_OUT: Final = dict.fromkeys(
    ("cells", "hypervisors"), "nova-manage cell_v2 list_cells"
)


def check_filters(subject: Subject) -> Iterator[Finding]:
    """Judge the filters that nova-scheduler has."""
    name = options.ENABLED_FILTERS
    if subject.nova_settings is None:
        command = "openstack perfvm policy check --nova-conf FILE"
        yield _unknown(name, codes.FILTERS_UNKNOWN, command)
        return
    enabled = subject.nova_settings.get(name.key, "").split(",")
    yield from options.judge_filters([word.strip() for word in enabled])


def check_isolation(subject: Subject) -> Iterator[Finding]:
    """Judge the option that keeps VMs without units off elastic hosts."""
    if scheme_of(subject.policy).enrolls or subject.elastic:
        yield from _nova_conf(
            subject,
            options.ISOLATED_AGGREGATES,
            codes.ISOLATION,
            codes.ISOLATION_UNKNOWN,
        )


def check_fallback(subject: Subject) -> Iterator[Finding]:
    """Judge the option by which pinned VMs come to hosts without CPU sets."""
    hosts = [h.host for h in subject.elastic if h.root.mode == "open"]
    if hosts or subject.nova_settings is None:
        for found in _nova_conf(
            subject,
            options.FALLBACK_QUERY,
            codes.FALLBACK_QUERY,
            codes.FALLBACK_UNKNOWN,
        ):
            where = f": {', '.join(sorted(hosts))}" if hosts else ""
            # A warning to other schemes; here no pinned VM comes.
            level = Level.FAILURE if found.code == codes.FALLBACK_QUERY else found.level
            yield found._replace(observed=found.observed + where, level=level)


def _nova_conf(
    subject: Subject, setting: Setting, wrong: str, unknown: str
) -> Iterator[Finding]:
    """Judge an option.

    :param wrong: the code of another value
    :param unknown: the code where nobody named the file
    """
    if subject.nova_settings is None:
        yield _unknown(setting, unknown, "openstack perfvm preflight --nova-conf FILE")
        return
    fault = setting.fault(subject.nova_settings.get(setting.key))
    if fault:
        yield Finding.of(wrong, "nova.conf", fault, setting.remedy)


def check_retries(subject: Subject) -> Iterator[Finding]:
    """Judge whether Placement can grant more than it has."""
    if subject.placement_settings is None:
        yield _unknown(
            options.RETRIES,
            codes.RETRY_COUNT_UNKNOWN,
            "openstack perfvm audit --placement-conf FILE",
        )
        return
    value = subject.placement_settings.get(options.RETRIES.key)
    found = overgranting.judge(value, subject.placement_database)
    if found:
        yield found


def _unknown(setting: Setting, code: str, remedy: str) -> Finding:
    file = "placement.conf" if setting.service == options.PLACEMENT else "nova.conf"
    return Finding.of(code, file, f"{setting}: no API shows it", remedy)


def check_cells(subject: Subject) -> Iterator[Finding]:
    """List the cells that are down: nobody looked at their hosts."""
    return (found for found in check_gaps(subject) if found.code == codes.CELL_DOWN)


def check_gaps(subject: Subject) -> Iterator[Finding]:
    """List what was not there to be judged."""
    for gap in subject.snapshot.gaps:
        what, _, why = gap.partition(": ")
        remedy = _FIND_OUT.get(what, "openstack catalog list")
        code = codes.CELL_DOWN if what == "cells" else codes.NOT_SEEN
        yield Finding.of(code, what, why, remedy)
