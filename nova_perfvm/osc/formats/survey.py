# SPDX-License-Identifier: Apache-2.0
"""A survey as rows of a table, and as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import starmap
from typing import Any, Final

from nova_perfvm.diagnose.survey import AdoptionStep, HostUse, NodeUse, Survey
from nova_perfvm.findings import Finding
from nova_perfvm.measure.report import style
from nova_perfvm.measure.report.elements import cell, counts, moment, table
from nova_perfvm.osc.formats import proposal

# Of a kind; the others are counted.
MOST_FINDINGS: Final = 5

Row = tuple[str, str, Any, str]


def headline(survey: Survey) -> str:
    """Return in one line what was found."""
    servers = sum(host.servers for host in survey.hosts)
    pinned = sum(host.pinned for host in survey.hosts)
    text = (
        f"{len(survey.hosts)} host(s), {servers} VM(s), {pinned} with CPUs of their own"
    )
    if survey.policy is None:
        return f"{text}; no policy can be proposed: {survey.not_proposed}"
    slots = survey.slots
    return (
        f"{text}; slots: {slots.used} used, {slots.free} free, {slots.unfit} unfit, "
        f"{slots.possible} more possible on hosts without dedicated CPUs; "
        f"{sum(refused.vms for refused in survey.refused)} VM(s) of flavors that "
        f"enforcing would refuse; "
        f"{len(survey.findings)} finding(s), {len(survey.gaps)} gap(s)"
    )


def rows(survey: Survey) -> Iterator[Row]:
    """Yield the figures, each with its part of the report."""
    for group in survey.groups:
        what = f"{group.shape} {group.mode}"
        yield (
            "hosts",
            what,
            group.hosts,
            f"{group.pinned} of {group.servers} VMs own CPUs",
        )
    for size in survey.sizes:
        details = f"on {size.hosts} host(s): {', '.join(size.flavor_names)}"
        yield "pinned VMs", f"{size.vcpus} vCPUs", len(size.servers), details
    if survey.policy is not None:
        for what, number, details in _slots(survey):
            yield "slots", what, number, details
    for refused in survey.refused:
        details = f"{refused.code}: {refused.words}"
        yield "refused when enforced", refused.flavor, refused.vms, details
    for code, count in survey.by_code.items():
        yield "findings", code, count, ""
    for key, why in survey.proposal.why.items() if survey.proposal else ():
        yield "policy", key, "", why
    for gap in survey.gaps:
        yield "gaps", gap.what, "", gap.why


def _slots(survey: Survey) -> Iterator[tuple[str, int, str]]:
    slots, vm_class = survey.slots, survey.vm_class
    size = f"of {vm_class.vcpus} vCPUs" if vm_class else ""
    yield "used", slots.used, f"with a VM {size}"
    yield "free", slots.free, "a VM of the class would get it now"
    yield (
        "unfit",
        slots.unfit,
        "other VMs, memory or the service's state are in the way",
    )
    won = survey.recovery
    if won is not None:
        live = f"{won.live} of them live, of {won.memory_mb // 1024} GiB of memory"
        by = f"of the unfit ones, by {len(won.moves)} migration(s), {live}"
        yield "recoverable", won.slots, by
    emptied = "on hosts without dedicated CPUs, each emptied and configured"
    at_once = f"{slots.at_once} of them on hosts without a VM"
    yield "possible", slots.possible, f"{emptied}; {at_once}"


def html(survey: Survey) -> str:
    """Return the page: figures, hosts, violations, the policy, the way, gaps."""
    facts = f"{escape(headline(survey))}<br>seen {moment(survey.taken_at)}"
    parts = [
        "<h1>What would it bring me?</h1>\n",
        f'<p class="facts">{facts}; nothing was changed</p>\n',
        _counts(survey),
        _taken_in(survey),
        _gaps(survey),
        _hosts(survey),
        _pinned(survey),
        _refused(survey),
        _findings(survey),
        _policy(survey),
        _steps(survey.steps),
        _nodes(survey.hosts),
    ]
    return style.document("perfvm survey", "".join(parts), look=_STYLE)


_STYLE: Final = """
.scroll { overflow-x: auto; }
.scroll:focus-visible, summary:focus-visible {
  outline: 2px solid #4c78a8; outline-offset: 2px; }
summary { cursor: pointer; }
details .scroll { max-height: 32rem; overflow-y: auto; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
/* Names of keys and hosts; the table scrolls. */
td:first-child { overflow-wrap: normal; }
"""


def _counts(survey: Survey) -> str:
    if survey.policy is None:
        return f'<p class="warning">{escape(survey.not_proposed)}</p>\n'
    colours = {"used": "ok", "free": "ok", "unfit": "critical"}
    tiles = counts(
        (number, colours.get(what, "unknown"), what)
        for what, number, _ in _slots(survey)
    )
    vm_class = survey.vm_class
    size = vm_class.vcpus if vm_class else 0
    words = "".join(
        f"<li><b>{what}</b>: {escape(details)}</li>\n"
        for what, _, details in _slots(survey)
    )
    return (
        f"<h2>Slots for VMs of {size} vCPUs</h2>\n"
        f'{tiles}<ul class="note">{words}</ul>\n' + _recovery(survey)
    )


def _recovery(survey: Survey) -> str:
    if survey.recovery is None or not survey.recovery.moves:
        return ""
    moves = "".join(
        f"<li>{escape(words)}<pre>{escape(command)}</pre></li>\n"
        for words, command in survey.recovery.moves
    )
    return (
        f"<details><summary>The {len(survey.recovery.moves)} migration(s), in their "
        f"order</summary><ol>{moves}</ol></details>\n"
    )


def _taken_in(survey: Survey) -> str:
    if not survey.taken_in:
        return ""
    return (
        "<p>This cloud knows of nova-perfvm already: it is judged as it is. With the "
        "policy that is in use (--policy FILE), <code>openstack perfvm audit</code> "
        "and <code>openstack perfvm capacity show</code> say more.</p>\n"
    )


def _gaps(survey: Survey) -> str:
    found = "".join(
        f"<li><b>{escape(gap.what)}</b>: {escape(gap.why)}"
        + (f" <i>({escape(gap.remedy)})</i>" if gap.remedy else "")
        + "</li>\n"
        for gap in survey.gaps
    )
    return f"<h2>Not seen</h2>\n<ul>{found}</ul>\n" if found else ""


def _hosts(survey: Survey) -> str:
    body = []
    for group in survey.groups:
        least, most = group.memory_gb
        memory = f"{least}" if least == most else f"{least} to {most}"
        body.append(
            (
                *map(cell, (group.shape, group.mode)),
                *map(_number, (group.hosts, memory, group.servers, group.pinned)),
                cell(", ".join(group.sources)),
            )
        )
    head = ("Shape", "Mode", "Hosts", "GiB", "VMs", "With own CPUs", "Nodes known from")
    return (
        f"<h2>Hosts</h2>\n{table(head, body, 'Hosts')}"
        '<p class="note">Mode: how the host divides its CPUs; open: no API shows that '
        "it does.</p>\n"
    )


def _pinned(survey: Survey) -> str:
    if not survey.sizes:
        return "<h2>VMs with CPUs of their own</h2>\n<p>There are none.</p>\n"
    body = [
        (
            *map(_number, (size.vcpus, len(size.servers), size.hosts, size.cpus)),
            cell(", ".join(size.flavor_names)),
        )
        for size in survey.sizes
    ]
    head = ("vCPUs", "VMs", "Hosts", "CPUs", "Flavors")
    return f"<h2>VMs with CPUs of their own</h2>\n{table(head, body, 'Pinned VMs')}"


def _refused(survey: Survey) -> str:
    if survey.policy is None:
        return ""
    title = "<h2>What enforcing would refuse</h2>\n"
    note = (
        "So under managed_hosts: all. Under labelled none of it before a host has its "
        "label."
        if survey.proposal
        else "managed_hosts: labelled leaves hosts without a label alone; or give the "
        "flavor a class."
    )
    if not survey.refused:
        return f'{title}<p class="ok">No flavor that is in use or public.</p>\n'
    body = [
        (
            cell(refused.flavor),
            *map(_number, (refused.vms, refused.hosts)),
            cell(f"{refused.code}: {refused.words}"),
        )
        for refused in survey.refused
    ]
    head = ("Flavor", "Running VMs", "Hosts", "Why")
    return (
        f'{title}<p class="note">VMs run on; no new one of these flavors comes to '
        f"these hosts, and none is moved to one. {note}</p>\n"
        f"{table(head, body, 'What enforcing would refuse')}"
    )


def _findings(survey: Survey) -> str:
    if survey.policy is None:
        return ""
    title = "<h2>What violates the policy today</h2>\n"
    if not survey.findings:
        return f'{title}<p class="ok">Nothing was found.</p>\n'
    judged = (
        ""
        if survey.taken_in
        else '<p class="note">As if pinned VMs of the size were of the class, and the '
        "policy managed all hosts.</p>\n"
    )
    of_code: dict[str, list[Finding]] = {}
    for finding in survey.findings:
        of_code.setdefault(finding.code, []).append(finding)
    return title + judged + "".join(starmap(_of_code, of_code.items()))


def _of_code(code: str, found: Sequence[Finding]) -> str:
    word = found[0].severity.value
    shown = "".join(
        f"<p><b>{escape(finding.subject)}</b>: {escape(finding.evidence)}</p>"
        + (f"<pre>{escape(finding.remedy)}</pre>" if finding.remedy else "")
        for finding in found[:MOST_FINDINGS]
    )
    more = len(found) - MOST_FINDINGS
    rest = f'<p class="note">and {more} more of these</p>' if more > 0 else ""
    return (
        f'<article class="{word}"><p class="code">{word}: {escape(code)} '
        f"({len(found)})</p>{shown}{rest}</article>\n"
    )


def _policy(survey: Survey) -> str:
    found = survey.proposal
    if found is None:
        return ""
    why = [(cell(key), cell(why)) for key, why in found.why.items()]
    left = "".join(f"<li>{escape(text)}</li>\n" for text in found.left_out)
    return (
        "<h2>A policy for this cloud</h2>\n"
        f"{table(('Key', 'Why'), why, 'Why the policy is so')}"
        + (f"<p>Not in it:</p>\n<ul>{left}</ul>\n" if left else "")
        + "<details><summary>The file, as --policy-out writes it</summary>"
        f"<pre>{escape(proposal.as_file(found))}</pre></details>\n"
    )


def _steps(steps: Iterable[AdoptionStep]) -> str:
    found = "".join(
        f"<li><p><b>{escape(step.title)}</b><br>{escape(step.why)}</p>"
        + (f"<pre>{escape(step.commands)}</pre>" if step.commands else "")
        + "</li>\n"
        for step in steps
    )
    return f"<h2>The way there</h2>\n<ol>{found}</ol>\n" if found else ""


def _nodes(hosts: Sequence[HostUse]) -> str:
    body = [
        (
            cell(host.name),
            cell(f"{host.shape} {host.mode}"),
            cell(host.state),
            cell(host.cells_source),
            *map(_number, (host.servers, *_host_slots(host))),
            cell(_words(host.nodes)),
        )
        for host in hosts
    ]
    head = (
        *("Host", "Shape", "State", "Nodes known from", "VMs"),
        *("Used", "Free", "Unfit", "If empty", "VMs with own CPUs by NUMA node"),
    )
    return (
        "<h2>Host by host</h2>\n<details><summary>"
        f"{len(hosts)} host(s) with their NUMA nodes</summary>"
        f"{table(head, body, 'Host by host')}</details>\n"
    )


def _host_slots(host: HostUse) -> tuple[Any, ...]:
    slots = host.slots
    if slots is None:
        return ("", "", "", "")
    return slots.used, slots.free, slots.unfit, host.possible


def _words(nodes: Iterable[NodeUse]) -> str:
    return "; ".join(
        f"node {node.id}: {node.pinned} of {node.dedicated} CPUs"
        + "".join(f", {count} of {vcpus}" for vcpus, count in node.vms.items())
        for node in nodes
    )


def _number(value: object) -> str:
    return f'<td class="number">{escape(str(value))}</td>'
