# SPDX-License-Identifier: Apache-2.0
"""What would break the guarantee of elastic hosts, looked for in order.

As oslo.upgradecheck has it: each check has a title and a result, and the worst
one decides.  UNKNOWN is one more: what no API shows is not taken for right.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from nova_perfvm import constants as const
from nova_perfvm.diagnose import overgranting
from nova_perfvm.diagnose.residents import class_name, divide
from nova_perfvm.diagnose.sizing import as_enrolled, enrolled_slots
from nova_perfvm.facts.demand import server_facts
from nova_perfvm.facts.elastic_host import ElasticHost
from nova_perfvm.facts.placement_database import PlacementDatabase
from nova_perfvm.facts.placement_request import elastic_traits, required_traits
from nova_perfvm.facts.snapshot import Aggregate, Server
from nova_perfvm.generate import options
from nova_perfvm.generate.options import Setting
from nova_perfvm.placement import units
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request
from nova_perfvm.rules.request.contract import CODES

FileOptions = dict[tuple[str, str], str]


class Code(enum.Enum):
    """How a check ended, from good to bad."""

    SUCCESS = 0
    UNKNOWN = 1
    WARNING = 2
    FAILURE = 3

    @property
    def exit_code(self) -> int:
        """What oslo.upgradecheck would exit with: 0, 1 or 2."""
        return {Code.SUCCESS: 0, Code.FAILURE: 2}.get(self, 1)


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    :ivar details: one finding each
    :ivar remedy: what to do, empty if there is nothing to
    """

    code: Code
    details: tuple[str, ...] = ()
    remedy: str = ""

    @classmethod
    def of(cls, found: Iterable[str], remedy: str, code: Code = Code.FAILURE) -> Self:
        """Return the result of a check: a success if it has found nothing."""
        found = tuple(found)
        return cls(code, found, remedy) if found else cls(Code.SUCCESS)


@dataclass(frozen=True)
class CloudView:
    """What preflight looks at.

    :ivar hosts: those that are enrolled, in part or in whole, and those that
        are to be
    :ivar wanted: names of the hosts that are to be enrolled
    :ivar servers: all of the cloud
    :ivar stray: name and trait of enrolled providers that are no compute host's
    :ivar settings: what a file of nova.conf's options says, None without one
    :ivar placement_settings: the same for placement.conf
    :ivar placement_database: that of placement.conf; None if nobody looked
    """

    hosts: tuple[ElasticHost, ...] = ()
    wanted: frozenset[str] = frozenset()
    servers: tuple[Server, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    stray: tuple[tuple[str, str], ...] = ()
    settings: FileOptions | None = None
    placement_settings: FileOptions | None = field(default=None)
    placement_database: PlacementDatabase | None = None


def preflight(policy: Policy, view: CloudView) -> list[tuple[str, CheckResult]]:
    """Run all checks, and give the title and the result of each."""
    return [(title, check(policy, view)) for title, check in CHECKS]


def worst(results: list[tuple[str, CheckResult]]) -> Code:
    """Return the code that decides."""
    codes = [result.code for _, result in results]
    return max(codes, key=lambda code: code.value, default=Code.SUCCESS)


def _policy(policy: Policy, _view: CloudView) -> CheckResult:
    found = []
    if policy.placement != "units":
        found.append(f"the policy says placement: {policy.placement}")
    return CheckResult.of(
        found, "name the policy file with --policy, or set placement: units"
    )


def _isolation(_policy: Policy, view: CloudView) -> CheckResult:
    setting = options.ISOLATED_AGGREGATES
    if view.settings is None:
        return _no_file(setting, "--nova-conf")
    fault = setting.fault(view.settings.get(setting.key))
    return CheckResult.of([fault] if fault else [], setting.remedy)


def _fallback(_policy: Policy, view: CloudView) -> CheckResult:
    setting = options.FALLBACK_QUERY
    if view.settings is None:
        return _no_file(setting, "--nova-conf")
    fault = setting.fault(view.settings.get(setting.key))
    open_hosts = [host.host for host in view.hosts if host.root.mode == "open"]
    found = [f"{fault}: {_list(open_hosts)}"] if fault and open_hosts else []
    return CheckResult.of(found, setting.remedy)


def check_retries(_policy: Policy, view: CloudView) -> CheckResult:
    """Judge whether Placement can grant more than it has."""
    if view.placement_settings is None:
        return _no_file(options.RETRIES, "--placement-conf")
    value = view.placement_settings.get(options.RETRIES.key)
    found = overgranting.judge(value, view.placement_database)
    if found.holds:
        return CheckResult(Code.SUCCESS)
    code = Code.UNKNOWN if found.holds is None else Code.FAILURE
    return CheckResult(code, (found.detail,), found.remedy)


def _no_file(setting: Setting, option: str) -> CheckResult:
    return CheckResult(
        Code.UNKNOWN,
        (f"{setting}: no API shows it",),
        f"name a copy of the file with {option}",
    )


def check_membership(_policy: Policy, view: CloudView) -> CheckResult:
    """List hosts that are isolated and not enrolled, or the reverse."""
    found = []
    for host in view.hosts:
        members = _list([a.name for a in host.isolated_by])
        if host.enrolled and not host.isolated_by:
            found.append(f"{host.host} is enrolled, but in no isolated aggregate")
        elif host.isolated_by and not host.closed:
            found.append(f"Placement does not know that {host.host} is in {members}")
        if host.isolated_by and not host.enrolled and host.host not in view.wanted:
            found.append(f"{host.host} is in {members}, but not enrolled")
        if host.service.interrupted:
            found.append(f"{host.host}: an enroll was cut off, nova-compute is off")
    found += [f"provider {name} has {trait}" for name, trait in view.stray]
    return CheckResult.of(found, "openstack perfvm host enroll (or unenroll) for each")


def check_enrolment(policy: Policy, view: CloudView) -> CheckResult:
    """List enrolled hosts to which no flavor of the policy brings a VM."""
    trait = units.elastic_trait(policy)
    found = []
    for host in view.hosts:
        if not host.enrolled:
            continue
        has = host.root.elastic_traits
        if has != {trait}:
            found.append(
                f"{host.host} is enrolled for VMs that ask for {_list(has)}, and "
                f"flavors of this policy ask for {trait}"
            )
        found += [
            f"aggregate {aggregate.name} keeps off {host.host} whoever does not ask "
            f"for {_list(aggregate.elastic_traits)}, and it has {_list(has)}"
            for aggregate in host.isolated_by
            if aggregate.elastic_traits - has
        ]
    return CheckResult.of(
        found,
        "openstack perfvm host enroll for each; with VMs on it, --backfill gives them "
        "the units that they then should have",
        Code.WARNING,
    )


def check_children(policy: Policy, view: CloudView) -> CheckResult:
    """List hosts whose child providers are not as they should be."""
    found = []
    for host in view.hosts:
        if not (host.enrolled or host.children):
            continue
        own = as_enrolled(policy, host)
        count = units.children_per_host(own)
        if len(host.children) != count:
            found.append(
                f"{host.host} has {len(host.children)} child provider(s), not {count}"
            )
        elif enrolled_slots(own, host) is None:
            found.append(
                f"{host.host}: names, inventories or traits of its child providers "
                "are not as they should be"
            )
    return CheckResult.of(found, "openstack perfvm host enroll for each repairs them")


def check_residents(policy: Policy, view: CloudView) -> CheckResult:
    """List servers without their units, or with ones that cannot be."""
    broken: list[str] = []
    pending: list[str] = []
    for host in view.hosts:
        own = as_enrolled(policy, host)
        slots = enrolled_slots(own, host)
        if slots is None:
            slots = units.children_per_host(own)
        shares = divide(own, host, units.children(own, host.root.name, slots))
        found = [
            f"{host.describe(c)} on {host.host} has no units" for c in shares.lacking
        ]
        found += shares.faults
        (broken if host.enrolled else pending).extend(found)
    remedy = "move them away, or openstack perfvm host enroll --backfill"
    code = Code.FAILURE if broken else Code.WARNING
    return CheckResult.of((*broken, *pending), remedy, code)


def check_flavors(policy: Policy, view: CloudView) -> CheckResult:
    """List servers whose flavors bring them to no enrolled host."""
    found = []
    for server in view.servers:
        # Those for another number of children are looked at apart.  Nova moves
        # none that came to no host.
        if (
            server.known
            and server.built
            and not left_behind(policy, server.extra_specs)
        ):
            lacking = flavor_lacks(policy, server)
            if lacking:
                where = server.host or "no host"
                found.append(f"{server} on {where}: its flavor lacks {lacking}")
    return CheckResult.of(
        found,
        "Nova moves such a VM to no enrolled host: resize it to a generated flavor",
        Code.WARNING,
    )


def flavor_lacks(policy: Policy, server: Server) -> str:
    """Return what a server's flavor lacks of its class's contract; empty for nothing.

    A server of no class cannot have one: its flavor lacks a class.
    """
    name = class_name(policy, server)
    if name is None:
        return "a class of the policy"
    request = server_facts(server)._replace(class_name=name)
    return "; ".join(
        words
        for reason in check_request(policy, request)
        if reason.code in CODES
        for words in reason.data["expected"]
    )


def check_left_behind(policy: Policy, view: CloudView) -> CheckResult:
    """List servers whose flavors ask for hosts with another number of children."""
    trait = units.elastic_trait(policy)
    found = []
    for server in view.servers:
        others = left_behind(policy, server.extra_specs)
        if not others or not server.built:
            continue
        left = sum(
            others <= host.root.elastic_traits and host.host != server.host
            for host in view.hosts
        )
        where = f"only to the {left} other host(s) with that" if left else "to no host"
        found.append(
            f"{server} on {server.host or 'no host'}: its flavor asks for "
            f"{_list(others)}, and hosts of this policy have {trait}: Nova migrates, "
            f"evacuates or unshelves it {where}"
        )
    return CheckResult.of(
        found,
        "they run, restart and are rebuilt as ever; to move each again, resize it to "
        "a flavor of this policy: openstack server resize --flavor FLAVOR SERVER (for "
        "a flavor of the same name, openstack perfvm flavor sync --prefix new- first)",
        Code.WARNING,
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


def _usage(_policy: Policy, view: CloudView) -> CheckResult:
    found = [
        f"{provider.name}: {used} {name} used of {capacity}"
        for host in view.hosts
        for provider in (host.root, *host.below)
        for name, used, capacity in provider.overused()
    ]
    return CheckResult.of(
        found,
        "move VMs away until it fits; check that Placement's "
        f"{options.RETRIES.option} is {options.RETRIES.values[0]}",
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


CHECKS: Final[tuple[tuple[str, Callable[[Policy, CloudView], CheckResult]], ...]] = (
    ("Policy", _policy),
    ("Isolated aggregates are filtered", _isolation),
    ("Pinned VMs may use VCPU", _fallback),
    ("Placement grants what it has", check_retries),
    ("Hosts are isolated and enrolled", check_membership),
    ("Hosts are enrolled for this policy", check_enrolment),
    ("Child providers", check_children),
    ("VMs on these hosts carry units", check_residents),
    ("Embedded flavors", check_flavors),
    ("Embedded flavors are of this policy", check_left_behind),
    ("Usage is within inventory", _usage),
)
