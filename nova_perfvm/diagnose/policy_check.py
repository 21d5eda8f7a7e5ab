# SPDX-License-Identifier: Apache-2.0
"""Whether a cloud is as a policy says: flavors, aggregates, hosts, filters.

Each check has a title and a result, as those of preflight have; what VMs do to
the policy is for the audit to say.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.diagnose.hosts import offer_faults, summarize
from nova_perfvm.diagnose.result import CheckResult, Code
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
    return [(title, check(policy, view)) for title, check in CHECKS]


def _policy(policy: Policy, _view: PolicyView) -> CheckResult:
    found = tuple(map(str, advice(policy)))
    code = Code.WARNING if found else Code.SUCCESS
    return CheckResult(code, (f"SHA-256 {policy.digest}", *found))


def _flavors(_policy: Policy, view: PolicyView) -> CheckResult:
    if view.flavor_refusals:
        return CheckResult(
            Code.FAILURE, view.flavor_refusals, "openstack perfvm flavor sync"
        )
    found = [f"would {change}" for change in view.flavor_changes]
    return CheckResult.of(found, "openstack perfvm flavor sync", Code.WARNING)


def _aggregates(policy: Policy, view: PolicyView) -> CheckResult:
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
    if policy.managed_hosts == "labelled" and not labelled:
        found.append(f"no aggregate has {const.CLASS_KEY}: the policy judges no host")
    return CheckResult.of(
        found, f"openstack aggregate set --property {const.CLASS_KEY}"
    )


def _isolation(policy: Policy, view: PolicyView) -> CheckResult:
    if not view.isolated_aggregates:
        return CheckResult(Code.SUCCESS, ("general flavors forbid the trait",))
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
    return CheckResult.of(
        found, f"put it into an aggregate with {', '.join(sorted(keys))}"
    )


def _hosts(policy: Policy, view: PolicyView) -> CheckResult:
    found = _host_faults(policy, view.snapshot)
    remedy = "nova-perfvm host config for the host; host enroll under units"
    return CheckResult.of(found, remedy, Code.WARNING)


def _host_faults(policy: Policy, snapshot: Snapshot) -> Iterator[str]:
    for host in snapshot.hosts:
        facts = host_facts(snapshot, host)
        if not policy.manages(facts.labels):
            continue
        root = snapshot.provider_by_uuid.get(host.provider)
        if root is None:
            yield f"{host.host} is not known to Placement"
            continue
        others = root.elastic_traits - {units.elastic_trait(policy)}
        if policy.placement == "units" and others:
            yield (
                f"{host.host} is enrolled for {', '.join(sorted(others))}, and "
                f"flavors of the policy ask for {units.elastic_trait(policy)}"
            )
        for fault in offer_faults(policy, host, facts, root):
            yield f"{host.host}: {fault.words}"


def _filters(_policy: Policy, view: PolicyView) -> CheckResult:
    name = options.ENABLED_FILTERS
    if view.settings is None:
        return CheckResult(
            Code.UNKNOWN,
            (f"no API shows {name}",),
            "name a copy of nova-scheduler's nova.conf with --nova-conf, or run "
            "nova-perfvm-status upgrade check there",
        )
    enabled = [word.strip() for word in view.settings.get(name.key, "").split(",")]
    found = [f"{name} does not name {n}" for n in options.missing_filters(enabled)]
    costly = options.costly_first(enabled)
    if not found and costly:
        return CheckResult(
            Code.WARNING,
            (f"{costly} comes before {options.FILTER}, which costs far less",),
            f"list {options.FILTER} first in {name}",
        )
    twice = options.twice_judged(enabled)
    if not found and twice:
        return CheckResult(Code.WARNING, (twice,), "and restart nova-scheduler")
    cheaper = options.cheaper(enabled)
    if not found and cheaper:
        # No fault, but worth a line.
        return CheckResult(Code.SUCCESS, (cheaper,))
    return CheckResult.of(found, f"add it to {name}, and restart nova-scheduler")


CHECKS: Final[tuple[tuple[str, Callable[[Policy, PolicyView], CheckResult]], ...]] = (
    ("Policy", _policy),
    ("Flavors", _flavors),
    ("Classes of aggregates", _aggregates),
    ("General VMs keep off slots", _isolation),
    ("Hosts offer what the policy says", _hosts),
    ("Filters", _filters),
)
