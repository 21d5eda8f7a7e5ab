# SPDX-License-Identifier: Apache-2.0
"""Judge whether hosts are known, labelled and isolated as the policy wants."""

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding
from nova_perfvm.generate import labels
from nova_perfvm.placement import commands
from nova_perfvm.placement.schemes import scheme_of

_LABEL: Final = f"openstack aggregate set --property {const.CLASS_KEY}"


def check_labels(subject: Subject) -> Iterator[Finding]:
    """List the hosts that offer slots and lack the label by which they are judged."""
    policy = subject.policy
    if policy.managed_hosts != "labelled":
        return
    scheme = scheme_of(policy)
    for view in subject.views:
        if not view.tree or view.facts.labels:
            continue
        name = quote(view.host)
        remedies: tuple[str, ...] = (commands.enroll(scheme, view.host),)
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
                classes, [name], subject.snapshot.aggregates
            )
        words = (
            f"it offers slots or units, and no aggregate of it has {const.CLASS_KEY}: "
            "under managed_hosts: labelled the filter lets no VM of a pinned class "
            "onto it, and every other"
        )
        remedy = "\n".join(remedies)
        yield Finding.of(codes.LABEL_MISSING, view.host, words, remedy)


def check_aggregates(subject: Subject) -> Iterator[Finding]:
    """List the aggregates that reserve hosts for classes that nobody declares."""
    known = subject.policy.by_name
    for aggregate in subject.snapshot.aggregates:
        unknown = aggregate.labels - known.keys()
        if unknown:
            yield Finding.of(
                codes.LABEL_UNKNOWN,
                f"aggregate {aggregate.name}",
                f"it reserves its hosts for {_list(unknown)}; the policy has "
                f"{_list(known)}: nothing comes to {_list(aggregate.hosts) or 'them'}",
                f"{_LABEL}=CLASS {quote(aggregate.name)}",
            )


def check_judged(subject: Subject) -> Iterator[Finding]:
    """Look that the policy judges a host at all."""
    labelled = any(aggregate.labels for aggregate in subject.snapshot.aggregates)
    if subject.policy.managed_hosts == "labelled" and not labelled:
        yield Finding.of(
            codes.NO_HOST_JUDGED,
            "aggregates",
            f"none has {const.CLASS_KEY}: the policy judges no host",
            f"{_LABEL}=CLASS AGGREGATE",
        )


def check_isolation(subject: Subject) -> Iterator[Finding]:
    """List hosts with slots that general VMs come to, if aggregates keep them off."""
    if not subject.isolated_aggregates:
        return
    for trait in sorted(scheme_of(subject.policy).traits_to_avoid(subject.policy)):
        key = f"trait:{trait}"
        isolated = {
            host
            for aggregate in subject.snapshot.aggregates
            if aggregate.metadata.get(key) == "required"
            for host in aggregate.hosts
        }
        for host in subject.snapshot.hosts:
            root = subject.snapshot.provider_by_uuid.get(host.provider)
            if root and trait in root.traits and host.host not in isolated:
                yield Finding.of(
                    codes.GENERAL_ON_SLOTS,
                    host.host,
                    "it has slots, and general VMs may come to it",
                    f"openstack aggregate set --property {key}=required AGGREGATE\n"
                    f"openstack aggregate add host AGGREGATE {quote(host.host)}",
                )


def check_known(subject: Subject) -> Iterator[Finding]:
    """List the hosts that Placement does not know."""
    for host in subject.snapshot.hosts:
        known = host.provider in subject.snapshot.provider_by_uuid
        if not known and (subject.is_wanted(host) or subject.managed(host.host)):
            yield Finding.of(
                codes.HOST_UNKNOWN,
                host.host,
                "it is not known to Placement",
                "systemctl restart nova-compute on the host, which reports anew",
            )


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
