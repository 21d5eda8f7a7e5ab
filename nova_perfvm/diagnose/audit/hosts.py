# SPDX-License-Identifier: Apache-2.0
"""Check that hosts are known, labelled and isolated as the policy wants."""

from collections.abc import Iterable, Iterator
from shlex import quote

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding
from nova_perfvm.generate import labels
from nova_perfvm.placement import commands
from nova_perfvm.placement.schemes import scheme_of


def check_labels(subject: Subject) -> Iterator[Finding]:
    """List the hosts that offer slots but lack the label by which they are judged."""
    policy = subject.policy
    if policy.managed_hosts != "labelled":
        return
    scheme = scheme_of(policy)
    said = set[str]()
    for view in subject.views:
        if not view.tree or view.facts.labels:
            continue
        remedies: tuple[str, ...] = (commands.enroll(policy, view.host),)
        if not view.enrolled:
            there = {*view.root.inventories, *view.root.traits}
            classes = [
                vm_class
                for vm_class in policy.pinned_classes
                if scheme.slot_class(policy, vm_class) in there
                or scheme.trait(policy, vm_class) in there
            ]
            if not classes:
                continue
            if view.root.mode == "mixed":
                classes += [c for c in policy.classes if not c.pinned]
            remedies = labels.label_commands(
                classes, [quote(view.host)], subject.snapshot.aggregates
            )
        words = (
            f"the host has slots or units, but no aggregate with {const.CLASS_KEY}: "
            "managed_hosts: labelled keeps VMs of pinned classes off, and only these"
        )
        # Several hosts share one aggregate, which is created only once.
        remedy = "\n".join(line for line in remedies if line not in said)
        said.update(remedies)
        yield Finding.of(codes.LABEL_MISSING, view.host, words, remedy)


def check_aggregates(subject: Subject) -> Iterator[Finding]:
    """List the aggregates that reserve hosts for classes unknown to the policy."""
    known = subject.policy.by_name
    for aggregate in subject.snapshot.aggregates:
        unknown = aggregate.labels - known.keys()
        if unknown:
            yield Finding.of(
                codes.LABEL_UNKNOWN,
                f"aggregate {aggregate.name}",
                f"it reserves its hosts for {_list(unknown)}; the policy has "
                f"{_list(known)}: nothing comes to {_list(aggregate.hosts) or 'them'}",
                f"openstack aggregate set --property {const.CLASS_KEY}=CLASS "
                f"{quote(aggregate.name)}",
            )


def check_judged(subject: Subject) -> Iterator[Finding]:
    """Check that the policy judges at least one host."""
    policy, aggregates = subject.policy, subject.snapshot.aggregates
    labelled = any(aggregate.labels and aggregate.hosts for aggregate in aggregates)
    if policy.managed_hosts == "labelled" and not labelled:
        classes = (policy.pinned_classes or policy.classes)[:1]
        yield Finding.of(
            codes.NO_HOST_JUDGED,
            "aggregates",
            f"no aggregate with hosts has {const.CLASS_KEY}: no host is judged",
            "\n".join(labels.label_commands(classes, ["HOST"], aggregates)),
        )


def check_isolation(subject: Subject) -> Iterator[Finding]:
    """List hosts with slots that aggregates should keep general VMs off, but do not."""
    if not subject.isolated_aggregates:
        return
    for trait in sorted(scheme_of(subject.policy).traits_to_avoid(subject.policy)):
        known = [a for a in subject.snapshot.aggregates if trait in a.required_traits]
        isolated = {host for aggregate in known for host in aggregate.hosts}
        verb, name = ("set", quote(known[0].name)) if known else ("create", "AGGREGATE")
        for view in subject.views:
            if view.tree and trait in view.root.traits and view.host not in isolated:
                yield Finding.of(
                    codes.GENERAL_ON_SLOTS,
                    view.host,
                    "it has slots, and general VMs may come to it",
                    f"openstack aggregate {verb} --property trait:{trait}=required "
                    f"{name}\nopenstack aggregate add host {name} {quote(view.host)}",
                )
                # Further hosts go into the same aggregate.
                verb = "set"


def check_known(subject: Subject) -> Iterator[Finding]:
    """List the hosts that Placement does not know."""
    for host in subject.snapshot.hosts:
        known = host.provider in subject.snapshot.provider_by_uuid
        if not known and (subject.is_wanted(host) or subject.managed(host.host)):
            yield Finding.of(
                codes.HOST_UNKNOWN,
                host.host,
                "Placement knows no resource provider of the host",
                "systemctl restart nova-compute on the host, which reports anew",
            )


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
