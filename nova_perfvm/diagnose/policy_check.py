# SPDX-License-Identifier: Apache-2.0
"""Whether a cloud is as a policy says: flavors, aggregates, hosts, filters.

Each check has a title and a result, as those of preflight have; what VMs do to
the policy is for the audit to say.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings
from nova_perfvm.diagnose.hosts import offer_faults, summarize
from nova_perfvm.diagnose.result import CheckResult, Code, run
from nova_perfvm.facts.snapshot import Snapshot, host_facts
from nova_perfvm.generate import options
from nova_perfvm.generate.options import FileOptions
from nova_perfvm.placement import slots, units
from nova_perfvm.policy import Policy, advice


@dataclass(frozen=True)
class PolicyView:
    """What a policy is compared with.

    :ivar flavor_changes: what ``flavor sync`` would do, in words
    :ivar flavor_refusals: why it would do nothing
    :ivar settings: what a file of nova-scheduler's options says, None without one
    :ivar isolated_aggregates: whether general flavors leave it to aggregates to
        keep their VMs off hosts with slots
    """

    snapshot: Snapshot
    flavor_changes: tuple[str, ...] = ()
    flavor_refusals: tuple[str, ...] = ()
    settings: FileOptions | None = None
    isolated_aggregates: bool = False


def check_policy(policy: Policy, view: PolicyView) -> list[tuple[str, CheckResult]]:
    """Run all checks, and give the title and the result of each."""
    return run(CHECKS, policy, view)


def _policy(policy: Policy, _view: PolicyView) -> Iterator[CheckResult]:
    yield CheckResult(Code.SUCCESS, (f"SHA-256 {policy.digest}",))
    for code, problem in advice(policy):
        yield CheckResult(Code.NOTE, (str(problem),), finding=code)


def _flavors(_policy: Policy, view: PolicyView) -> Iterator[CheckResult]:
    sync = "openstack perfvm flavor sync"
    if view.flavor_refusals:
        yield CheckResult.of(findings.FLAVORS_REFUSED, view.flavor_refusals, sync)
        return
    found = [f"would {change}" for change in view.flavor_changes]
    yield CheckResult.of(findings.FLAVORS_DIFFER, found, sync, Code.WARNING)


def _aggregates(policy: Policy, view: PolicyView) -> Iterator[CheckResult]:
    found = []
    labelled = False
    for aggregate in view.snapshot.aggregates:
        value = aggregate.metadata.get(const.CLASS_KEY)
        if value is None:
            continue
        labelled = True
        names = {name.strip() for name in value.split(",")}
        found += [
            f"aggregate {aggregate.name} has {const.CLASS_KEY}={value}, and the policy "
            f"declares no class {name!r}"
            for name in sorted(names - policy.by_name.keys())
        ]
    remedy = f"openstack aggregate set --property {const.CLASS_KEY}"
    yield CheckResult.of(findings.LABEL_UNKNOWN, found, remedy)
    if policy.managed_hosts == "labelled" and not labelled:
        words = f"no aggregate has {const.CLASS_KEY}: the policy judges no host"
        yield CheckResult.of(findings.NO_HOST_JUDGED, [words], remedy)


def _isolation(policy: Policy, view: PolicyView) -> Iterator[CheckResult]:
    if not view.isolated_aggregates:
        yield CheckResult(Code.SUCCESS, ("general flavors forbid the trait",))
        return
    aggregates = view.snapshot.aggregates
    found, keys = [], set()
    for trait in sorted(slots.traits_to_avoid(policy)):
        key = f"trait:{trait}"
        isolated = {
            host
            for aggregate in aggregates
            if aggregate.metadata.get(key) == "required"
            for host in aggregate.hosts
        }
        for host in summarize(policy, view.snapshot):
            if trait in host.traits and host.host not in isolated:
                keys.add(f"{key}=required")
                found.append(f"{host.host} has slots, and general VMs may come to it")
    yield CheckResult.of(
        findings.GENERAL_ON_SLOTS,
        found,
        f"put it into an aggregate with {', '.join(sorted(keys))}",
    )


def _hosts(policy: Policy, view: PolicyView) -> Iterator[CheckResult]:
    found: dict[str, list[str]] = {}
    for code, words in _host_faults(policy, view.snapshot):
        found.setdefault(code, []).append(words)
    remedy = "nova-perfvm host config for the host; host enroll under units"
    for code, faults in found.items():
        yield CheckResult.of(code, faults, remedy, Code.WARNING)


def _host_faults(policy: Policy, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield code and words."""
    for host in snapshot.hosts:
        facts = host_facts(snapshot, host)
        if not policy.manages(facts.labels):
            continue
        root = snapshot.provider_by_uuid.get(host.provider)
        if root is None:
            yield findings.HOST_UNKNOWN, f"{host.host} is not known to Placement"
            continue
        others = root.elastic_traits - {units.elastic_trait(policy)}
        if policy.placement == "units" and others:
            words = (
                f"{host.host} is enrolled for {', '.join(sorted(others))}, and flavors "
                f"of the policy ask for {units.elastic_trait(policy)}"
            )
            yield findings.TRAIT_DIFFERS, words
        for fault in offer_faults(policy, host, facts, root):
            yield fault.code, f"{host.host}: {fault.words}"


def _filters(_policy: Policy, view: PolicyView) -> Iterator[CheckResult]:
    name = options.ENABLED_FILTERS
    if view.settings is None:
        yield CheckResult(
            Code.UNKNOWN,
            (f"no API shows {name}",),
            "name a copy of nova-scheduler's nova.conf with --nova-conf, or run "
            "nova-perfvm-status upgrade check there",
            findings.FILTERS_UNKNOWN,
        )
        return
    enabled = [word.strip() for word in view.settings.get(name.key, "").split(",")]
    missing = [f"{name} does not name {n}" for n in options.missing_filters(enabled)]
    costly = options.costly_first(enabled)
    if missing:
        remedy = f"add it to {name}, and restart nova-scheduler"
        yield CheckResult.of(findings.FILTER_MISSING, missing, remedy)
    elif costly:
        yield CheckResult.of(
            findings.FILTER_ORDER,
            [f"{costly} comes before {options.FILTER}, which costs far less"],
            f"list {options.FILTER} first in {name}",
            Code.WARNING,
        )
    elif twice := options.twice_judged(enabled):
        remedy = "and restart nova-scheduler"
        yield CheckResult.of(findings.JUDGED_TWICE, [twice], remedy, Code.WARNING)
    elif cheaper := options.cheaper(enabled):
        yield CheckResult.of(findings.CHEAPER_FILTER, [cheaper], "", Code.NOTE)


Check = Callable[[Policy, PolicyView], Iterable[CheckResult]]
CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("Policy", _policy),
    ("Flavors", _flavors),
    ("Classes of aggregates", _aggregates),
    ("General VMs keep off slots", _isolation),
    ("Hosts offer what the policy says", _hosts),
    ("Filters", _filters),
)
