# SPDX-License-Identifier: Apache-2.0
"""A cloud judged in every way at once: slots, audit, and what each host refuses."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nova_perfvm import constants as const
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import AuditReport, Subject
from nova_perfvm.diagnose.capacity import Slots, host_capacity
from nova_perfvm.diagnose.explain.report import request_of
from nova_perfvm.diagnose.explain.verdicts import (
    HostVerdict,
    SchedulerSettings,
    judge_all,
    settings_for,
)
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import Flavor, Snapshot
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.generate.properties import BUILT_IN, Generator
from nova_perfvm.policy import Policy
from nova_perfvm.rules import REASON_CODES

# All codes that speak against a host, whichever layer has them.
CODES = tuple(sorted(REASON_CODES | const.OUTER_CODES))


@dataclass(frozen=True)
class FlavorVerdicts:
    """The verdict of each host on a new server of one flavor.

    :ivar note: what is to be said about the flavor; empty for nothing
    :ivar verdicts: in the order of the hosts; empty where nova-api refuses the
        flavor itself
    """

    flavor: str
    class_name: str
    note: str
    verdicts: tuple[HostVerdict, ...]

    @property
    def accepting(self) -> int:
        """How many hosts would take a server."""
        return sum(verdict.accepted for verdict in self.verdicts)

    def by_code(self) -> dict[str, int]:
        """Count the hosts that refuse for each code there is, also those of none.

        A host that several codes speak against counts for each.
        """
        found = Counter(
            code
            for verdict in self.verdicts
            for code in {reason.code for reason in verdict.reasons}
        )
        return {code: found[code] for code in CODES}


@dataclass(frozen=True)
class Overview:
    """A cloud and all that is said about it.

    :ivar subject: the policy and the snapshot that were judged
    :ivar slots: of each pinned class on each host
    """

    subject: Subject
    views: tuple[HostView, ...]
    slots: tuple[Slots, ...]
    report: AuditReport
    flavors: tuple[FlavorVerdicts, ...]

    @cached_property
    def slots_by_host(self) -> dict[str, list[Slots]]:
        """The slots of each host, by :attr:`HostView.name`."""
        found: dict[str, list[Slots]] = {view.name: [] for view in self.views}
        for slots in self.slots:
            found[slots.name].append(slots)
        return found


def look(
    policy: Policy,
    snapshot: Snapshot,
    settings: SchedulerSettings | None = None,
    *,
    flavors: Sequence[str] | None = None,
    generators: Mapping[str, Generator] = BUILT_IN,
) -> Overview:
    """Judge a cloud.

    :param flavors: names or IDs of the cloud's flavors to judge hosts for; None for
        those that the policy lists, as the cloud has them
    :param generators: of flavors' extra specs and images' properties
    :raises NotFoundError: when the cloud has no such flavor, or more than one
    """
    subject = Subject(policy, snapshot, generators=generators)
    views = views_of(snapshot)
    settings = settings or settings_for(policy)
    return Overview(
        subject=subject,
        views=views,
        slots=host_capacity(policy, snapshot, settings),
        report=audit.run(subject),
        flavors=tuple(_judged(subject, views, settings, flavors)),
    )


def _judged(
    subject: Subject,
    views: tuple[HostView, ...],
    settings: SchedulerSettings,
    names: Sequence[str] | None,
) -> list[FlavorVerdicts]:
    snapshot = subject.snapshot
    missing: dict[str, Flavor] = {}
    if names is None:
        missing = {
            flavor.name: _made(flavor)
            for flavor in subject.flavors
            if flavor.name not in subject.flavors_today
        }
        snapshot = replace(snapshot, flavors=(*snapshot.flavors, *missing.values()))
        names = tuple(flavor.name for flavor in subject.flavors)
    found = []
    for name in names:
        note = "not in the cloud yet: as the policy makes it" if name in missing else ""
        verdicts: tuple[HostVerdict, ...] = ()
        try:
            request, _ = request_of(snapshot, flavor=name)
            verdicts = judge_all(subject.policy, request, views, settings)
        except RequestError as exc:
            note = str(exc)
        found.append(FlavorVerdicts(name, _class_name(snapshot, name), note, verdicts))
    return found


def _class_name(snapshot: Snapshot, flavor: str) -> str:
    specs = next(f.extra_specs for f in snapshot.flavors if flavor in {f.id, f.name})
    return specs.get(const.CLASS_KEY, "")


def _made(flavor: PolicyFlavor) -> Flavor:
    return Flavor(
        id=flavor.name,
        name=flavor.name,
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        disk_gb=flavor.root_gb,
        extra_specs=flavor.extra_specs,
    )
