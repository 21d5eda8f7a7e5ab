# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import rules
from nova_perfvm.facts import RequestCell
from tests.unit.rules import hosts
from tests.unit.rules.hosts import POLICY, hp_request


def codes(request, policy=POLICY):
    return [reason.code for reason in rules.check_request(policy, request)]


class ResolveClassTest(testtools.TestCase):
    def test_the_class_of_a_request(self):
        for request, expected in (
            (hp_request(), "high-performance"),
            (hosts.general_request(), "general"),
            (hosts.pinned_request(), None),
            (hosts.general_request(class_name="prefvm"), None),
        ):
            found = rules.resolve_class(POLICY, request)
            self.assertEqual(expected, found and found.name)


class CheckRequestTest(testtools.TestCase):
    """A flavor that claims a class must be of it."""

    def test_right_in_every_respect(self):
        prefers = (RequestCell(0, 20, 65536, None, "prefer"),)
        for request in (
            hp_request(),
            hp_request(cells=prefers),
            hp_request(volume_backed=None),
            hosts.general_request(class_name="general"),
            # These claim no class.
            hosts.general_request(),
            hosts.pinned_request(),
        ):
            self.assertEqual([], codes(request))

    def test_one_rule_broken_at_a_time(self):
        for expected, facts in (
            ("flavor.vcpus", {"vcpus": 16, "cells": (RequestCell(0, 16, 65536),)}),
            ("flavor.cpu_policy", {"cells": ()}),
            ("flavor.cpu_policy", {"cells": (RequestCell(20, 0, 65536),)}),
            ("flavor.cpu_policy", {"cells": (RequestCell(4, 16, 65536),)}),
            ("flavor.numa_nodes", {"cells": (RequestCell(0, 10, 32768),) * 2}),
            (
                "flavor.cpu_thread_policy",
                {"cells": (RequestCell(0, 20, 65536, None, "isolate"),)},
            ),
            ("flavor.emulator_threads", {"emulator_threads": "isolate"}),
            ("request.no_multiqueue", {"multiqueue": False}),
            ("request.not_volume_backed", {"volume_backed": False}),
        ):
            self.assertEqual([expected], codes(hp_request(**facts)), facts)
        reasons = rules.check_request(POLICY, hp_request(class_name="high-perf"))
        self.assertEqual(["flavor.class_unknown"], [r.code for r in reasons])
        request = hosts.pinned_request(class_name="general")
        self.assertEqual(["flavor.cpu_policy"], codes(request))

    def test_a_former_size_is_named_where_it_is_one(self):
        policy = hosts.policy(vcpus=18, former_vcpus=(20,))
        for vcpus, named in ((20, True), (16, False)):
            cells = (RequestCell(0, vcpus, 65536),)
            reason, *_ = rules.check_request(
                policy, hp_request(vcpus=vcpus, cells=cells)
            )
            self.assertEqual(named, "former size" in rules.describe(reason), vcpus)

    def test_numa_nodes_of_both_cpu_policies(self):
        two_nodes = {"cells": (RequestCell(1, 0, 2048),) * 2, "class_name": "general"}
        one_node = two_nodes | {"cells": (RequestCell(2, 0, 4096),)}
        for policy, request, expected in (
            (hosts.policy({"numa_nodes": 1}), two_nodes, ["flavor.numa_nodes"]),
            (hosts.policy({"numa_nodes": 1}), one_node, []),
            (POLICY, two_nodes, []),
        ):
            found = codes(hosts.general_request(**request), policy)
            self.assertEqual(expected, found)
        pinned = hp_request(cells=(RequestCell(0, 10, 32768),) * 2)
        found = codes(pinned, hosts.policy(numa_nodes=None))
        self.assertEqual(["flavor.numa_nodes"], found)

    def test_memory_of_several_numa_nodes(self):
        policy = hosts.policy(numa_nodes=2)
        for memory_mb, expected in (
            ((32768, 32768), []),
            ((64512, 1024), ["flavor.numa_nodes"]),
        ):
            cells = tuple(RequestCell(0, 10, share) for share in memory_mb)
            (*found,) = rules.check_request(policy, hp_request(cells=cells))
            self.assertEqual(expected, [reason.code for reason in found])
            for reason in found:
                words = "2 NUMA nodes of 10, 10 vCPUs and 64512, 1024 MiB"
                self.assertIn(words, rules.describe(reason))

    def test_all_violations_at_once(self):
        request = hp_request(vcpus=16, cells=(), multiqueue=False, volume_backed=False)
        self.assertEqual(
            [
                "flavor.vcpus",
                "flavor.cpu_policy",
                "request.no_multiqueue",
                "request.not_volume_backed",
            ],
            codes(request),
        )

    def test_one_vcpu_needs_no_queues(self):
        policy = hosts.policy(general={"vif_multiqueue": True})
        for vcpus, expected in ((1, []), (2, ["request.no_multiqueue"])):
            request = hosts.general_request(class_name="general", vcpus=vcpus)
            self.assertEqual(expected, codes(request, policy))

    def test_page_sizes(self):
        for wanted, size_kb, right in (
            ("1GB", 1048576, True),
            ("1GB", 2048, False),
            ("1GB", None, False),
            ("2MB", 2048, True),
            ("large", -2, True),
            ("large", 2048, True),
            ("large", -1, False),
            ("large", -3, False),
            ("small", -1, True),
            ("small", 4, True),
            ("small", 64, True),
            ("large", 64, False),
            ("small", 2048, False),
        ):
            request = hp_request(cells=(RequestCell(0, 20, 65536, size_kb),))
            found = codes(request, hosts.policy(mem_page_size=wanted))
            self.assertEqual([] if right else ["flavor.mem_page_size"], found, wanted)


class CheckImageTest(testtools.TestCase):
    """A rebuild is judged by what an image alone decides."""

    def test_each(self):
        queues = ["request.no_multiqueue"]
        wants = hosts.policy(general={"vif_multiqueue": True})
        labelled = hosts.policy(managed_hosts="labelled")
        general, label = hosts.general_request, frozenset({"high-performance"})
        for request, policy, labels, expected in (
            (hp_request(multiqueue=False), POLICY, (), queues),
            (hp_request(vcpus=16, volume_backed=False), POLICY, (), []),
            (hosts.pinned_request(), POLICY, (), []),
            # The default class promises only what flavors name.
            (general(), wants, (), []),
            (general(class_name="general"), wants, (), queues),
            (general(class_name="gone"), wants, (), []),
            (hp_request(multiqueue=False), labelled, (), []),
            (hp_request(multiqueue=False), labelled, label, queues),
        ):
            found = rules.check_image(policy, request, frozenset(labels))
            self.assertEqual(expected, [reason.code for reason in found])


class FormerSizesTest(testtools.TestCase):
    POLICY = hosts.policy(vcpus=18, former_vcpus=(20,))

    def test_only_a_server_that_has_it_keeps_it(self):
        wrong, undeclared = ["flavor.vcpus"], hosts.policy(vcpus=18)
        for keys, policy, expected in (
            ({"running_vcpus": 20}, self.POLICY, []),
            ({"running_vcpus": None}, self.POLICY, wrong),
            ({"running_vcpus": 18}, self.POLICY, wrong),
            ({"running_vcpus": 16, "vcpus": 16}, self.POLICY, wrong),
            ({"running_vcpus": 20}, undeclared, wrong),
            (
                {"running_vcpus": 20, "multiqueue": False},
                self.POLICY,
                ["request.no_multiqueue"],
            ),
        ):
            self.assertEqual(expected, codes(hp_request(**keys), policy), keys)

    def test_when_somebody_has_to_look(self):
        for request, expected in (
            (hp_request(), True),
            (hp_request(vcpus=18), False),
            (hp_request(vcpus=16), False),
            (hosts.general_request(vcpus=20), False),
            (hp_request(class_name="typo"), False),
        ):
            self.assertIs(expected, rules.is_former_size(self.POLICY, request))
