# SPDX-License-Identifier: Apache-2.0
"""What would break a cloud under the policy, elastic hosts above all, in order.

Each check has a title and a result.  What it judges of one host or server at a
time the audit says of that host or server.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings
from nova_perfvm.diagnose import overgranting
from nova_perfvm.diagnose.enforcing import refused_flavors
from nova_perfvm.diagnose.hosts import label_faults
from nova_perfvm.diagnose.residents import Shares, class_or_misfits, divide
from nova_perfvm.diagnose.result import CheckResult, Code, run
from nova_perfvm.diagnose.sizing import as_enrolled, enrolled_slots
from nova_perfvm.facts.demand import server_facts
from nova_perfvm.facts.elastic_host import ElasticHost
from nova_perfvm.facts.placement_database import PlacementDatabase
from nova_perfvm.facts.placement_request import elastic_traits, required_traits
from nova_perfvm.facts.snapshot import Aggregate, Server, Snapshot
from nova_perfvm.generate import options
from nova_perfvm.generate.options import FileOptions, Setting
from nova_perfvm.placement import units
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request, describe
from nova_perfvm.rules.request.contract import CODES


@dataclass(frozen=True)
class CloudView:
    """What preflight looks at.

    :ivar hosts: those that are enrolled, in part or in whole, and those that
        are to be
    :ivar wanted: names of the hosts that are to be enrolled
    :ivar snapshot: of the whole cloud; None where only elastic hosts are looked at
    :ivar servers: all of the cloud
    :ivar stray: name and trait of enrolled providers that are no compute host's
    :ivar settings: what a file of nova.conf's options says, None without one
    :ivar placement_settings: the same for placement.conf
    :ivar placement_database: that of placement.conf; None if nobody looked
    """

    hosts: tuple[ElasticHost, ...] = ()
    wanted: frozenset[str] = frozenset()
    snapshot: Snapshot | None = None
    servers: tuple[Server, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    stray: tuple[tuple[str, str], ...] = ()
    settings: FileOptions | None = None
    placement_settings: FileOptions | None = field(default=None)
    placement_database: PlacementDatabase | None = None


def preflight(policy: Policy, view: CloudView) -> list[tuple[str, CheckResult]]:
    """Run all checks, and give the title and the result of each."""
    return run(CHECKS, policy, view)


def _policy(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    if policy.placement != "units" and view.hosts:
        hosts = _list(host.host for host in view.hosts)
        words = (
            f"the policy says placement: {policy.placement}, and elastic hosts need "
            f"units: {hosts}"
        )
        yield CheckResult.of(
            findings.NOT_UNITS,
            [words],
            "name the policy file with --policy, or set placement: units",
        )


def _enforced(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    found = refused_flavors(policy, view.snapshot) if view.snapshot else ()
    # A flavor that nobody uses need not go.
    used = any(flavor.vms for flavor in found)
    yield CheckResult.of(
        findings.FLAVORS_TO_REFUSE,
        map(str, found),
        "managed_hosts: labelled in the policy, which leaves hosts without a label "
        "alone; or give the flavor a class (openstack flavor set --property "
        f"{const.CLASS_KEY}=CLASS FLAVOR), and resize its VMs to it",
        Code.WARNING if used else Code.NOTE,
    )


def _labels(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    faults = list(label_faults(policy, view.snapshot)) if view.snapshot else []
    commands = dict.fromkeys(c for fault in faults for c in fault.commands)
    yield CheckResult.of(
        findings.LABEL_MISSING,
        (f"{fault.host}: {fault.words}" for fault in faults),
        "; ".join(commands),
        Code.WARNING,
    )


def _isolation(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    if policy.placement == "units" or view.hosts:
        codes = (findings.ISOLATION, findings.ISOLATION_UNKNOWN)
        yield from _nova_conf(view, options.ISOLATED_AGGREGATES, codes)


def _fallback(_policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    open_hosts = [host.host for host in view.hosts if host.root.mode == "open"]
    if open_hosts or view.settings is None:
        codes = (findings.FALLBACK_QUERY, findings.FALLBACK_UNKNOWN)
        where = f": {_list(open_hosts)}"
        yield from _nova_conf(view, options.FALLBACK_QUERY, codes, where)


def _nova_conf(
    view: CloudView, setting: Setting, codes: tuple[str, str], where: str = ""
) -> Iterator[CheckResult]:
    """Judge an option.

    :param codes: of another value, and of not knowing it
    """
    wrong, unknown = codes
    if view.settings is None:
        yield _no_file(setting, "--nova-conf", unknown)
        return
    fault = setting.fault(view.settings.get(setting.key))
    if fault:
        yield CheckResult.of(wrong, [fault + where], setting.remedy)


def _retries(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    yield check_retries(policy, view)


def check_retries(_policy: Policy, view: CloudView) -> CheckResult:
    """Judge whether Placement can grant more than it has."""
    if view.placement_settings is None:
        return _no_file(
            options.RETRIES, "--placement-conf", findings.RETRY_COUNT_UNKNOWN
        )
    value = view.placement_settings.get(options.RETRIES.key)
    return overgranting.judge(value, view.placement_database)


def _no_file(setting: Setting, option: str, finding: str) -> CheckResult:
    return CheckResult(
        Code.UNKNOWN,
        (f"{setting}: no API shows it",),
        f"name a copy of the file with {option}",
        finding,
    )


def _membership(_policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    found = [
        fault for host in view.hosts for fault in membership_faults(host, view.wanted)
    ]
    found += map(describe_stray, view.stray)
    yield CheckResult.of(
        findings.HOST_NOT_ISOLATED,
        found,
        "openstack perfvm host enroll (or unenroll) for each",
    )


def membership_faults(host: ElasticHost, wanted: Collection[str] = ()) -> Iterator[str]:
    """Return in what a host is isolated and not enrolled, or the reverse.

    :param wanted: the hosts that are to be enrolled
    """
    members = _list(a.name for a in host.isolated_by)
    if host.enrolled and not host.isolated_by:
        yield f"{host.host} is enrolled, but in no isolated aggregate"
    elif host.isolated_by and not host.closed:
        yield f"Placement does not know that {host.host} is in {members}"
    if host.isolated_by and not host.enrolled and host.host not in wanted:
        yield f"{host.host} is in {members}, but not enrolled"
    if host.service.interrupted:
        yield f"{host.host}: an enroll was cut off, nova-compute is off"


def describe_stray(stray: tuple[str, str]) -> str:
    """Return what is wrong with a provider that is enrolled and no host's."""
    name, trait = stray
    return f"provider {name} has {trait}"


def _enrolment(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    yield CheckResult.of(
        findings.TRAIT_DIFFERS,
        (fault for host in view.hosts for fault in enrolment_faults(policy, host)),
        "openstack perfvm host enroll for each; with VMs on it, --backfill gives them "
        "the units that they then should have",
        Code.WARNING,
    )


def enrolment_faults(policy: Policy, host: ElasticHost) -> Iterator[str]:
    """Return why no flavor of the policy brings a VM to an enrolled host."""
    if not host.enrolled:
        return
    trait, has = units.elastic_trait(policy), host.root.elastic_traits
    if has != {trait}:
        yield (
            f"{host.host} is enrolled for VMs that ask for {_list(has)}, and "
            f"flavors of this policy ask for {trait}"
        )
    for aggregate in host.isolated_by:
        if aggregate.elastic_traits - has:
            yield (
                f"aggregate {aggregate.name} keeps off {host.host} whoever does not "
                f"ask for {_list(aggregate.elastic_traits)}, and it has {_list(has)}"
            )


def _children(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    yield CheckResult.of(
        findings.CHILDREN_DIFFER,
        (fault for host in view.hosts for fault in children_faults(policy, host)),
        "openstack perfvm host enroll for each repairs them",
    )


def children_faults(policy: Policy, host: ElasticHost) -> Iterator[str]:
    """Return in what a host's child providers are not as they should be."""
    if not (host.enrolled or host.children):
        return
    for provider in host.strayed:
        yield f"{provider.name} is not in the tree of {host.host}, and not empty"
    own = as_enrolled(policy, host)
    count = units.children_per_host(own)
    if len(host.children) != count:
        yield f"{host.host} has {len(host.children)} child provider(s), not {count}"
    elif enrolled_slots(own, host) is None:
        yield (
            f"{host.host}: names, inventories or traits of its child providers "
            "are not as they should be"
        )


def _residents(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    backfill = "openstack perfvm host enroll --backfill"
    for enrolled, finding, code, give in (
        (True, findings.UNITS_LACKING, Code.FAILURE, findings.HEAL),
        (False, findings.TO_BACKFILL, Code.WARNING, backfill),
    ):
        yield CheckResult.of(
            finding,
            (
                fault
                for host in view.hosts
                if host.enrolled is enrolled
                for fault in resident_faults(policy, host)
            ),
            f"move them away, or {give}",
            code,
        )


def shares_as_enrolled(policy: Policy, host: ElasticHost) -> Shares:
    """Divide the units of a host by the number of children it was enrolled for."""
    own = as_enrolled(policy, host)
    slots = enrolled_slots(own, host)
    if slots is None:
        slots = units.children_per_host(own)
    return divide(own, host, units.children(own, host.root.name, slots))


def resident_faults(policy: Policy, host: ElasticHost) -> Iterator[str]:
    """Return which servers are without their units, or have ones that cannot be."""
    shares = shares_as_enrolled(policy, host)
    for consumer in shares.lacking:
        yield f"{host.describe(consumer)} on {host.host} has no units"
    yield from shares.faults


def _flavors(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    yield CheckResult.of(
        findings.FLAVOR_WITHOUT_UNITS,
        (fault for server in view.servers for fault in flavor_faults(policy, server)),
        "Nova moves such a VM to no enrolled host: resize it to a generated flavor",
        Code.WARNING,
    )


def flavor_faults(policy: Policy, server: Server) -> Iterator[str]:
    """Return why a server's flavor brings it to no enrolled host."""
    # One for another number of children is looked at apart.  Nova moves none that
    # came to no host.
    movable = server.known and server.built
    if movable and not left_behind(policy, server.extra_specs):
        fault = _flavor_fault(policy, server)
        if fault:
            yield f"{server} on {server.host or 'no host'}: {fault}"


def _flavor_fault(policy: Policy, server: Server) -> str:
    """Return what a server's flavor lacks, or has otherwise, of its class's contract.

    Empty for nothing.  What it asks for beyond that is no fault here.
    """
    name, misfits = class_or_misfits(policy, server)
    if misfits:
        return "; ".join(map(describe, misfits))
    if name is None:
        return "its flavor pins CPUs and names no class of the policy"
    request = server_facts(server)._replace(class_name=name)
    reasons = [
        reason
        for reason in check_request(policy, request)
        if reason.code in CODES and reason.data["expected"]
    ]
    lacking = [w for r in reasons if not r.data["found"] for w in r.data["expected"]]
    words = [describe(reason) for reason in reasons if reason.data["found"]]
    if lacking:
        words.append(f"its flavor lacks {'; '.join(lacking)}")
    return "; ".join(words)


def _left_behind(policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    yield CheckResult.of(
        findings.FLAVOR_LEFT_BEHIND,
        (
            fault
            for server in view.servers
            for fault in left_behind_faults(policy, server, view.hosts)
        ),
        "they run, restart and are rebuilt as ever; to move each again, resize it to "
        "a flavor of this policy: openstack server resize --flavor FLAVOR SERVER (for "
        "a flavor of the same name, openstack perfvm flavor sync --prefix new- first)",
        Code.WARNING,
    )


def left_behind_faults(
    policy: Policy, server: Server, hosts: Iterable[ElasticHost]
) -> Iterator[str]:
    """Return whether a server's flavor asks for another number of children."""
    others = left_behind(policy, server.extra_specs)
    if not others or not server.built:
        return
    left = sum(
        others <= host.root.elastic_traits and host.host != server.host
        for host in hosts
    )
    where = f"only to the {left} other host(s) with that" if left else "to no host"
    yield (
        f"{server} on {server.host or 'no host'}: its flavor asks for "
        f"{_list(others)}, and hosts of this policy have "
        f"{units.elastic_trait(policy)}: "
        f"Nova migrates, evacuates or unshelves it {where}"
    )


def left_behind(policy: Policy, extra_specs: Mapping[str, str]) -> frozenset[str]:
    """Return the traits that a flavor asks for and elastic hosts no longer have.

    A server has the flavor that it was made with, so a change of the number of
    children leaves it behind.
    """
    asked = elastic_traits(required_traits(extra_specs))
    return asked - {units.elastic_trait(policy)}


def asks_units(extra_specs: Mapping[str, str]) -> bool:
    """Return whether a flavor asks for units."""
    return any(
        key.startswith("resources") and key.endswith(f":{const.RC_UNIT}")
        for key in extra_specs
    )


def _usage(_policy: Policy, view: CloudView) -> Iterator[CheckResult]:
    found = [
        f"{provider.name}: {used} {name} used of {capacity}"
        for host in view.hosts
        for provider in (host.root, *host.below)
        for name, used, capacity in provider.overused()
    ]
    yield CheckResult.of(
        findings.OVER_INVENTORY,
        found,
        "move VMs away until it fits; check that Placement's "
        f"{options.RETRIES.option} is {options.RETRIES.values[0]}",
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


Check = Callable[[Policy, CloudView], Iterable[CheckResult]]
CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("Policy", _policy),
    ("Flavors go on finding hosts", _enforced),
    ("Hosts with slots have their label", _labels),
    ("Isolated aggregates are filtered", _isolation),
    ("Pinned VMs may use VCPU", _fallback),
    ("Placement grants what it has", _retries),
    ("Hosts are isolated and enrolled", _membership),
    ("Hosts are enrolled for this policy", _enrolment),
    ("Child providers", _children),
    ("VMs on these hosts carry units", _residents),
    ("Embedded flavors", _flavors),
    ("Embedded flavors are of this policy", _left_behind),
    ("Usage is within inventory", _usage),
)
