# SPDX-License-Identifier: Apache-2.0
"""The dry run, asked about what was drawn."""

from nova_perfvm.cloud.dry_run.scheduling import DryRun
from nova_perfvm.facts.dry_run import Question
from tests.drawn import agreement, comparing


class DryRunCase(agreement.DrawnCase):
    """The dry run beside nova-scheduler, which is asked for all hosts and for each."""

    def read(self):
        self.dry = DryRun()

    def compare(self, chapter, case, spec, refused):
        if self.server:
            question = Question(server=self.server.id, every=case.live)
        else:
            question = self.question(case)
        try:
            answer = self.dry.answer(question)
        except Exception as exc:  # noqa: BLE001  # whatever it is, Nova went on
            answer = exc
        whole, alone = None, {}
        if not refused:
            whole = self.scheduler.ask(spec)
            known = frozenset() if self.EACH else whole.passed
            alone = {
                host: self.scheduler.ask(spec, host)
                for host in sorted(self.uuids.keys() - known)
            }
            self.counts["taken"] += len(whole.passed)
            refusing = (found.refused_by for found in alone.values())
            self.counts.update(by for by in refusing if by)
        else:
            self.counts["refused by nova-api"] += 1
        self.counts["verdicts"] += len(self.uuids)
        together = chapter.setting.get("together", False)
        yield from comparing.dry_run(
            answer, refused, whole, alone, self.uuids, together=together
        )
        if whole and case.count > 1 and not isinstance(answer, Exception):
            several = self.scheduler.ask(spec, count=case.count)
            self.counts[f"several {'placed' if several.selected else 'not'}"] += 1
            yield from comparing.several(answer, several, case.count)

    def question(self, case):
        """Return the Question of a new server."""
        image = self.images[case.image["name"]] if case.image else None
        return Question(
            flavor=case.flavor["name"],
            image=image and self.cloud.image_of(image),
            volume_backed=case.volume_backed,
            zone=case.zone,
            project=self.cloud.api.project_id,
            group=self.groups.get(case.group, ""),
            hints=self.hints,
            count=case.count,
            every=case.live,
        )
