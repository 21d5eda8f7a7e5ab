# SPDX-License-Identifier: Apache-2.0
"""Find servers and hosts that known bugs of Nova hit, by the hosts' releases."""

from collections.abc import Iterator

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding
from nova_perfvm.known_bugs import CloudFacts, hits


def check(subject: Subject) -> Iterator[Finding]:
    """List servers and hosts that a known bug hits, or may hit.

    Bugs that hit every pinned VM of a release are left out: plans avoid them.
    """
    for bug, hit in hits(CloudFacts(subject.snapshot, subject.hypervisors)):
        if bug.rule is None or bug.rule.of_all:
            continue
        yield Finding.of(
            codes.NOVA_BUG if hit.certain else codes.NOVA_BUG_POSSIBLE,
            str(hit.server or hit.host),
            f"{bug.name}: {bug.title}: {hit.why}",
            bug.remedy_for(hit),
            source=bug.url,
        )
