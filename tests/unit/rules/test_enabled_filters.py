# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.policy import loader
from nova_perfvm.rules import enabled_filters
from tests.unit.rules import filter_lists


class FiltersTest(testtools.TestCase):
    def test_each_list_has_one_answer(self):
        for text, expected, words in filter_lists.LISTS:
            found = enabled_filters.judge(text.split(","), loader.load())
            self.assertEqual(expected, [f.code for f in found], text)
            self.assertIn(words, " ".join(f.observed for f in found))
            for finding in found:
                self.assertTrue(finding.remedy.endswith("and restart nova-scheduler"))

    def test_where_vms_are_put_on_the_nodes_of_the_claim(self):
        policy = replace(loader.load(), placement="cells")
        for text, expected in (
            ("PerfVMFilter,PerfVMNUMATopologyFilter", []),
            ("PerfVMFilter,NUMATopologyFilter", [codes.NOT_STEERED]),
            # What it says of a node is forgotten by the other.
            (
                "PerfVMFilter,PerfVMNUMATopologyFilter,NUMATopologyFilter",
                [codes.NOT_STEERED],
            ),
            ("PerfVMFilter", [codes.FILTER_MISSING]),
        ):
            found = enabled_filters.judge(text.split(","), policy)
            self.assertEqual(expected, [finding.code for finding in found], text)
