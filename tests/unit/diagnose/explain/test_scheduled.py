# SPDX-License-Identifier: Apache-2.0
"""The words for what parts of nova-scheduler refuse, by the model's own filters."""

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose.explain import explain_scheduled, request_of
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.facts.dry_run import DESTINATION, SchedulerAnswer
from nova_perfvm.facts.snapshot import Flavor
from tests.unit.facts.snapshot.clouds import POLICY, Cloud

# By the part that refuses the host: the code, and words with figures.
REFUSING = {
    "ComputeCapabilitiesFilter": (
        "nova.compute_capabilities",
        "capabilities:nodename: expected s== c2, found c1",
    ),
    "NUMATopologyFilter": (
        const.NOVA_NUMA_TOPOLOGY,
        "4 shared + 0 pinned vCPUs with 307200 MiB",
    ),
    "NumInstancesFilter": (
        "nova.num_instances",
        "max_instances_per_host: expected fewer than 1, found 1",
    ),
    # No figure is known, or the model would not refuse: the name is all there is.
    "IoOpsFilter": (const.NOVA_FILTER, "IoOpsFilter of nova-scheduler"),
    "ServerGroupAffinityFilter": (const.NOVA_FILTER, "ServerGroupAffinityFilter of"),
    "FailureDomainFilter": (const.NOVA_FILTER, "FailureDomainFilter of"),
    DESTINATION: (const.NOVA_DESTINATION, "the request"),
}


class WordsTest(testtools.TestCase):
    def test_each_part(self):
        cloud = Cloud()
        cloud.add_host("c1", "shared")
        cloud.add_general("g", "c1")
        specs = {"hw:numa_nodes": "1", "capabilities:nodename": "s== c2"}
        cloud.flavors["f"] = Flavor("f", "f", 4, 307200, 0, specs)
        taken = cloud.snapshot()
        request, _ = request_of(taken, flavor="f", volume_backed=True)
        options = {("filter_scheduler", "max_instances_per_host"): "1"}
        settings = settings_for(POLICY, options)
        for part, (code, said) in REFUSING.items():
            answer = SchedulerAnswer(offered={"p-c1": (part,)})
            found = explain_scheduled(POLICY, taken, request, settings, answer)
            (verdict,) = found.verdicts
            self.assertEqual(code, verdict.code)
            self.assertIn(said, in_words(verdict.reasons))
            self.assertEqual((), found.unjudged)


class NotesTest(testtools.TestCase):
    def test_cells_that_do_not_answer(self):
        cloud = Cloud()
        cloud.add_host("c1", "shared")
        answer = SchedulerAnswer(notes=("told",), unseen=("cell2", "cell3"))
        settings = settings_for(POLICY)
        found = explain_scheduled(POLICY, cloud.snapshot(), None, settings, answer)
        told, down = found.notes
        self.assertEqual("told", told)
        self.assertIn("cell2, cell3", down)
