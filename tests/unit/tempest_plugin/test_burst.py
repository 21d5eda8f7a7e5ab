# SPDX-License-Identifier: Apache-2.0

import unittest

from tests.unit.tempest_plugin.cases import PluginCase

CLASSES = {"hp": "high-performance", "g": "general"}


class BurstTest(PluginCase):
    """The burst on a cloud of one host that takes everyone."""

    def case(self, hosts=("a",), **attributes):
        self.asked = []
        attributes = {
            "high_performance": "hp",
            "general": "g",
            "flavor_of": {"hp": {"name": "hp"}},
            "empty_hosts": lambda _: list(hosts),
            "create": lambda _, flavor: self.asked.append(flavor) or flavor,
            "room": lambda _, host: 3,
            "wait": lambda _, flavor, state: self.running(flavor),
            "assert_disjoint": lambda _, servers: None,
        } | attributes
        return self.make("scenario.test_burst", "BurstTest", "test_mixed", **attributes)

    def running(self, flavor):
        return {
            "id": flavor,
            "status": "ACTIVE",
            "OS-EXT-SRV-ATTR:host": "a",
            "flavor": {
                "original_name": flavor,
                "extra_specs": {"perfvm:class": CLASSES[flavor]},
            },
        }

    def test_no_empty_host(self):
        self.configure(high_performance_flavor="hp")
        case = self.case(hosts=())
        self.assertRaisesRegex(unittest.SkipTest, "no empty host", case.test_mixed)
        self.assertEqual([], self.asked)

    def test_who_may_share_a_host(self):
        for exclusive, room, words in (
            ("cell", 3, None),
            ("host", 3, "a has"),
            # Of three that run.
            ("none", 2, "3"),
        ):
            self.configure(
                high_performance_flavor="hp", max_per_host=1, exclusive=exclusive
            )
            case = self.case(room=lambda _, host, room=room: room)
            if words:
                self.assertRaisesRegex(AssertionError, words, case.test_mixed)
            else:
                case.test_mixed()
            self.assertEqual(["g"] * 3 + ["hp"] * 3, sorted(self.asked))
