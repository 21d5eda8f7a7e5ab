# SPDX-License-Identifier: Apache-2.0
"""Judge a cloud in every way at once: slots, audit, and verdicts of each host."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nova_perfvm import constants as const
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import AuditReport, Subject
from nova_perfvm.diagnose.capacity import Slots, host_capacity
from nova_perfvm.diagnose.explain.report import request_of
from nova_perfvm.diagnose.verdicts import (
    HostVerdict,
    SchedulerSettings,
    judge_all,
    settings_for,
)
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import Policy
from nova_perfvm.rules import REASON_CODES

# The reason codes of every layer.
CODES = tuple(sorted(REASON_CODES | const.OUTER_CODES))


@dataclass(frozen=True)
class FlavorVerdicts:
    """The verdict of each host on a new server of one flavor.

    :ivar note: a remark about the flavor; empty without one
    :ivar verdicts: in the order of the hosts; empty if nova-api refuses the flavor
        itself, or the cloud does not have the flavor
    """

    flavor: str
    class_name: str
    note: str
    verdicts: tuple[HostVerdict, ...]

    @property
    def accepting(self) -> int:
        """The number of hosts that would take a server."""
        return sum(verdict.accepted for verdict in self.verdicts)

    def by_code(self) -> dict[str, int]:
        """Count the refusing hosts for each known code, including codes with 0.

        A host that is refused by several codes counts for each of them.
        """
        found = Counter(
            code
            for verdict in self.verdicts
            for code in {reason.code for reason in verdict.reasons}
        )
        return {code: found[code] for code in CODES}


@dataclass(frozen=True)
class Overview:
    """A cloud with its slots, audit, and verdicts.

    :ivar subject: the policy and the snapshot that were judged
    :ivar slots: slots of each pinned class on each host
    """

    subject: Subject
    slots: tuple[Slots, ...]
    report: AuditReport
    flavors: tuple[FlavorVerdicts, ...]

    @cached_property
    def slots_by_host(self) -> dict[str, list[Slots]]:
        """The slots of each host, by :attr:`HostView.name`."""
        found: dict[str, list[Slots]] = {view.name: [] for view in self.subject.views}
        for slots in self.slots:
            found[slots.name].append(slots)
        return found


def look(
    policy: Policy,
    snapshot: Snapshot,
    settings: SchedulerSettings | None = None,
    *,
    flavors: Sequence[str] | None = None,
) -> Overview:
    """Judge a cloud.

    :param flavors: names or IDs of the cloud's flavors to judge hosts for; None for the
        flavors that the policy lists
    :raises NotFoundError: when the cloud has no flavor or several flavors of a name
    """
    subject = Subject(policy, snapshot)
    settings = settings or settings_for(policy)
    return Overview(
        subject=subject,
        slots=host_capacity(policy, snapshot, settings),
        report=audit.run(subject),
        flavors=tuple(_judged(subject, settings, flavors)),
    )


def _judged(
    subject: Subject,
    settings: SchedulerSettings,
    names: Sequence[str] | None,
) -> list[FlavorVerdicts]:
    snapshot = subject.snapshot
    found = []
    listed = {flavor.name: flavor.class_name for flavor in subject.flavors}
    for name in listed if names is None else names:
        verdicts: tuple[HostVerdict, ...] = ()
        class_name, note = listed.get(name, ""), ""
        try:
            if names is not None or name in subject.flavors_today:
                request, _ = request_of(snapshot, flavor=name)
                class_name = request.facts.class_name or ""
                verdicts = judge_all(subject.policy, request, subject.views, settings)
            else:
                note = "not in the cloud: openstack perfvm flavor sync makes it"
        except RequestError as exc:
            note = str(exc)
        found.append(FlavorVerdicts(name, class_name, note, verdicts))
    return found
