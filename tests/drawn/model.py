# SPDX-License-Identifier: Apache-2.0
"""The model, asked about what was drawn: on a snapshot, without Nova."""

import pathlib

import fixtures
from nova.conf import CONF

from nova_perfvm.cloud import candidates, nova_database
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.osc.base import options_of
from tests.drawn import agreement, comparing


class ModelCase(agreement.DrawnCase):
    """The model beside nova-scheduler, on a snapshot of the same cloud."""

    def read(self):
        self.seen = nova_database.with_cells(
            read_snapshot(self.admin_api),
            nova_database.compute_nodes([]),
            nova_database.service_versions([]),
            nova_database.server_devices([]),
        )
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "nova.conf"
        path.write_text(self.nova_conf(), encoding="utf-8")
        self.settings = settings_for(self.policy, options_of(str(path)))

    def nova_conf(self):
        """Return the text of a nova.conf that says how the scheduler is set up."""
        names = (
            ("filter_scheduler", "available_filters"),
            ("filter_scheduler", "enabled_filters"),
            ("filter_scheduler", "weight_classes"),
            ("workarounds", "disable_fallback_pcpu_query"),
            ("filter_scheduler", "pci_in_placement"),
            ("pci", "alias"),
            ("perfvm", "policy_file"),
        )
        text = ""
        for group, name in dict.fromkeys([*names, *self.options]):
            value = CONF[group][name]
            if name in {"available_filters", "alias"}:
                lines = value
            else:
                lines = [",".join(value) if isinstance(value, list) else value]
            text += f"[{group}]\n" + "".join(f"{name} = {line}\n" for line in lines)
        return text

    def compare(self, chapter, case, spec, refused):
        if self.hints:
            # Nobody can tell the model of them.
            self.counts["with hints"] += 1
            return
        found = self.explain(case)
        whole = None if refused else self.scheduler.ask(spec)
        if whole:
            self.counts["taken"] += len(whole.passed)

        def alone(host):
            return self.scheduler.ask(spec, host)

        def claimed(filters, host):
            return self.scheduler.ask_filters(filters, spec, host)

        for judged, disagreement in comparing.model(
            found, refused, whole, alone, claimed
        ):
            self.counts["verdicts"] += 1
            wrong = "right" if disagreement is None else "wrong"
            self.counts[f"{judged}, {wrong}"] += 1
            if judged == comparing.JUDGED and disagreement:
                yield disagreement

    def explain(self, case):
        """Return the Explanation of a case, or the RequestError."""
        try:
            request, _ = explain.request_of(self.seen, **self.asked(case))
        except RequestError as exc:
            return exc
        offered = None
        if case.live:
            try:
                offered = candidates.offered(
                    self.admin_api, request, self.settings, self.seen.aggregates
                )
            except CloudError as exc:
                # As the command takes it.
                if exc.status != 400:
                    raise
                offered = frozenset()
        return explain.explain(
            self.policy, self.seen, request, self.settings, offered=offered
        )

    def asked(self, case):
        """Return what the model is told of a case."""
        if self.server:
            return {"server": self.server.id}
        return {
            "flavor": case.flavor["name"],
            "image": case.image and self.images[case.image["name"]],
            "volume_backed": case.volume_backed,
            "availability_zone": case.zone,
            "project": self.cloud.api.project_id,
            "group": self.groups.get(case.group),
        }
