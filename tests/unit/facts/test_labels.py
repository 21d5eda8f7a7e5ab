# SPDX-License-Identifier: Apache-2.0
"""The comma list of ``perfvm:class`` means the same to whoever reads it."""

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose import audit
from nova_perfvm.facts.labels import labels_of
from nova_perfvm.facts.snapshot import Aggregate, Snapshot
from nova_perfvm.policy import loader
from nova_perfvm.scheduler import adapters
from tests.unit.scheduler import states


class LabelsTest(testtools.TestCase):
    def test_each_value_has_one_meaning(self):
        policy = loader.load()
        for value, expected in (
            ("high-performance", {"high-performance"}),
            ("high-performance,", {"high-performance"}),
            (" general , high-performance", {"general", "high-performance"}),
            ("general,gold", {"general", "gold"}),
            (" , ", set()),
            ("", set()),
        ):
            metadata = {const.CLASS_KEY: value}
            aggregate = Aggregate(1, "u", "a", metadata, frozenset({"h1"}))
            self.assertEqual(expected, labels_of(metadata), value)
            self.assertEqual(expected, aggregate.labels)
            state = states.host_state(labels=[value])
            self.assertEqual(expected, adapters.host_facts(state).labels)
            seen = Snapshot("2026-01-01T00:00:00+00:00", aggregates=(aggregate,))
            for selection in (audit.Selection.AUDIT, audit.Selection.POLICY):
                results = audit.run(audit.Subject(policy, seen), selection).results
                found = dict(results)["Classes of aggregates"]
                self.assertEqual("gold" in value, bool(found), value)

    def test_none(self):
        self.assertEqual(frozenset(), labels_of({"availability_zone": "nova"}))
