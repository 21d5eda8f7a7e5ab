# SPDX-License-Identifier: Apache-2.0
"""The question that Placement is asked, and answers that are none."""

from urllib.parse import parse_qs

import testtools

from nova_perfvm.cloud import candidates
from nova_perfvm.diagnose.explain import settings_for
from nova_perfvm.facts.demand import request_for
from nova_perfvm.facts.snapshot import Aggregate, Flavor
from tests.unit.diagnose.explain.test_explain import UNITS

FLAVOR = Flavor(
    "f",
    "f",
    20,
    2048,
    0,
    {
        "hw:cpu_policy": "dedicated",
        "group_policy": "none",
        "resources_a:CUSTOM_PERFVM_UNIT": "1",
        "trait_a:CUSTOM_A": "required",
        "trait:CUSTOM_B": "forbidden",
    },
)
ISOLATING = Aggregate(1, "u1", "a", {"trait:CUSTOM_C": "required"}, frozenset())


class Placement:
    """Gives the same answer each time, and keeps the questions.

    The real one is asked in the functional tests.
    """

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def placement(self, method, path):
        self.asked.append(parse_qs(path.partition("?")[2]))
        return self.answer


class OfferedTest(testtools.TestCase):
    def offered(self, answer):
        self.placement = Placement(answer)
        return candidates.offered(
            self.placement, request_for(FLAVOR), settings_for(UNITS), [ISOLATING]
        )

    def test_both_questions_of_a_pinned_server(self):
        none = {"allocation_requests": [], "provider_summaries": {}}
        self.assertEqual(frozenset(), self.offered(none))
        first, second = self.placement.asked
        self.assertEqual(["MEMORY_MB:2048,PCPU:20"], first["resources"])
        self.assertEqual(["MEMORY_MB:2048,VCPU:20"], second["resources"])
        self.assertEqual(["CUSTOM_A"], first["required_a"])
        self.assertEqual(["!CUSTOM_B"], first["required"])
        self.assertEqual(["!in:u1"], first["member_of"])
        self.assertEqual(["!COMPUTE_STATUS_DISABLED"], first["root_required"])

    def test_children_stand_for_their_hosts(self):
        answer = {
            "allocation_requests": [{"allocations": {"host": {}, "child": {}}}],
            "provider_summaries": {
                "host": {"root_provider_uuid": "host"},
                "child": {"root_provider_uuid": "host"},
            },
        }
        self.assertEqual({"host"}, self.offered(answer))
