# SPDX-License-Identifier: Apache-2.0
"""A survey as rows of a table, and as a self-contained HTML page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from nova_perfvm.changes.migrations.model import MigrationPlan, command
from nova_perfvm.changes.recover import MOST_HOSTS
from nova_perfvm.changes.what_if.emptying import Emptied
from nova_perfvm.diagnose.formats import proposal
from nova_perfvm.diagnose.survey import Survey
from nova_perfvm.diagnose.survey.hosts import HostUse
from nova_perfvm.diagnose.survey.steps import drain
from nova_perfvm.findings import Finding
from nova_perfvm.pages import render_page
from nova_perfvm.printable import number_of, some_of

# Findings shown for each code; the page counts the others.
MOST_FINDINGS: Final = 5
_MOST_NAMED: Final = 3
_COLOURS: Final = {"used": "ok", "free": "ok", "unfit": "failure"}

Row = tuple[str, str, Any, str]


class SurveyReport(NamedTuple):
    """A survey, and what migrations would bring.

    :ivar won: the migrations that would free unfit slots; None if none is unfit
    :ivar emptied: the hosts to convert, in order
    :ivar max_ratio: that they were emptied by; None for Placement's
    """

    survey: Survey
    won: MigrationPlan | None = None
    emptied: tuple[Emptied, ...] = ()
    max_ratio: float | None = None

    @property
    def gained(self) -> int:
        """The number of slots that the emptied hosts would have."""
        slots = self.survey.to_convert
        return sum(slots[one.host] for one in self.emptied)


def headline(report: SurveyReport) -> str:
    """Return a line with the numbers of hosts, VMs, slots, findings and gaps."""
    survey, emptied = report.survey, report.emptied
    servers = sum(len(host.view.servers) for host in survey.hosts)
    pinned = sum(host.pinned for host in survey.hosts)
    hosts = number_of(len(survey.hosts), "host")
    text = f"{hosts}, {number_of(servers, 'VM')}, {pinned} with CPUs of their own"
    if survey.policy is None:
        return f"{text}; no policy can be proposed: {survey.not_proposed}"
    slots = survey.slots
    names = some_of([one.host for one in emptied], _MOST_NAMED)
    first = f" in this order: {names}" if names else ""
    refused = number_of(sum(one.vms for one in survey.refused), "VM")
    return (
        f"{text}; slots: {slots.used} used, {slots.free} free, {slots.unfit} unfit, "
        f"{report.gained} more on {number_of(len(emptied), 'host')} that can be emptied"
        f"{first}; {refused} of flavors that enforcing would refuse; "
        f"{number_of(len(survey.findings), 'finding')}, "
        f"{number_of(len(survey.gaps), 'gap')}"
    )


def rows(report: SurveyReport) -> Iterator[Row]:
    """Yield the rows of the table: part of the report, title, figure, details."""
    survey = report.survey
    for what, hosts, details in _kinds(survey):
        yield "hosts", what, hosts, details
    for size in survey.sizes:
        details = f"on {number_of(size.hosts, 'host')}: {', '.join(size.flavor_names)}"
        yield "pinned VMs", f"{size.vcpus} vCPUs", len(size.servers), details
    if survey.policy is not None:
        for what, number, details in _slots(report):
            yield "slots", what, number, details
    for one in report.emptied:
        # The command chooses the hosts that take the servers when it runs.
        moves = f"{number_of(len(one.moves), 'server')}: " if one.moves else ""
        command = drain(one.host, report.max_ratio)
        yield "convert", one.host, survey.to_convert[one.host], f"{moves}{command}"
    for refused in survey.refused:
        details = f"{refused.code}: {refused.words}"
        yield "refused when enforced", refused.flavor, refused.vms, details
    for code, count in Counter(found.code for found in survey.findings).items():
        yield "findings", code, count, ""
    for key, why in survey.proposal.why.items() if survey.proposal else ():
        yield "policy", key, "", why
    for gap in survey.gaps:
        yield "gaps", gap.subject, "", gap.observed


def _kinds(survey: Survey) -> list[tuple[str, int, str]]:
    """Return the hosts counted by shape and mode, the most frequent first."""
    by_kind: dict[str, list[HostUse]] = defaultdict(list)
    for host in survey.hosts:
        by_kind[f"{host.shape} {host.mode}"].append(host)
    found = []
    for kind, mine in by_kind.items():
        servers = sum(len(host.view.servers) for host in mine)
        pinned = sum(host.pinned for host in mine)
        found.append((kind, len(mine), f"{pinned} of {servers} VMs own CPUs"))
    return sorted(found, key=lambda row: -row[1])


def _slots(report: SurveyReport) -> Iterator[tuple[str, int, str]]:
    survey, won = report.survey, report.won
    slots, vm_class = survey.slots, survey.vm_class
    size = f"of {vm_class.vcpus} vCPUs" if vm_class else ""
    yield "used", slots.used, f"with a VM {size}"
    yield "free", slots.free, "a VM of the class would get it now"
    yield (
        "unfit",
        slots.unfit,
        "other VMs, memory or the service's state are in the way",
    )
    if won is not None:
        live = f"{won.live} of them live, of {won.memory_mb // 1024} GiB of memory"
        by = f"unfit slots, freed by {number_of(len(won.moves), 'migration')}, {live}"
        yield "recoverable", won.gained, by
    many = len(survey.to_convert)
    yield (
        "convertible",
        report.gained,
        f"on {len(report.emptied)} of {number_of(many, 'host')} to configure, each "
        "emptied after those before it"
        + (f" ({MOST_HOSTS} were tried)" if many > MOST_HOSTS else ""),
    )
    yield (
        "possible",
        survey.possible,
        "on all hosts to configure, if other hosts take their VMs",
    )


def html(report: SurveyReport) -> str:
    """Return the page: figures, hosts, violations, policy, next steps, gaps."""
    survey, won = report.survey, report.won
    slots = list(_slots(report)) if survey.policy else []
    findings: dict[str, list[Finding]] = {}
    for finding in survey.findings:
        findings.setdefault(finding.code, []).append(finding)
    return render_page(
        "survey.html",
        survey=survey,
        headline=headline(report),
        convert=[row[1:] for row in rows(report) if row[0] == "convert"],
        steps=survey.steps([one.host for one in report.emptied], report.max_ratio),
        kinds=_kinds(survey),
        slots=slots,
        moves=[(move, command(move)) for move in won.moves] if won else [],
        counts=[(n, _COLOURS.get(what, "unknown"), what) for what, n, _ in slots],
        findings=[(c, found[0].level.value, found) for c, found in findings.items()],
        most_findings=MOST_FINDINGS,
        policy_file=proposal.as_file(survey.proposal) if survey.proposal else "",
    )
