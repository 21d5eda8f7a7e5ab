# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from unittest import mock

import testtools
import yaml

from nova_perfvm.exceptions import PerfVMError, UnknownClassError
from nova_perfvm.policy import HostShape, loader
from nova_perfvm.sizing import plan as plans
from nova_perfvm.sizing.carriers import Conditions, DiskLimits
from nova_perfvm.sizing.hosts import HostModel
from nova_perfvm.sizing.plan import Wishes, notes, plan
from nova_perfvm.sizing.ratios import VMRatios
from tests.unit.sizing import test_disk
from tests.unit.sizing.test_carriers import service

POLICY = loader.load()
MODEL = HostModel(HostShape(2, 20), 500)
RATIOS = VMRatios("test", cpu=1.0)
BUSY = {"cpu_percent": 40, "used_memory_gb": 60}


def planned(*services, policy=POLICY, model=MODEL, wishes=None, **conditions):
    return plan(
        policy,
        model,
        services,
        Conditions(**{"ratios": RATIOS} | conditions),
        wishes or Wishes(),
    )


def totals(found):
    return {arm.name: arm.total for arm in found.arms}


class PlanTest(testtools.TestCase):
    def test_two_vms_on_each_host(self):
        found = planned(service(servers=42, **BUSY))
        self.assertEqual(
            {"one VM per server": 42, "slots": 21, "cells": 21, "units": 21},
            totals(found),
        )
        self.assertEqual(
            "from 42 servers to 21 hosts: 50 % fewer; lower bound 21", found.sentence
        )
        # 16 CPUs used: at 0.7 they need 22.9, more than a VM.
        self.assertEqual(
            [42, 21, 21],
            [found.sensitivity[ratio]["slots"] for ratio in (0.7, 0.8, 0.9)],
        )

    def test_arms_differ(self):
        """Small pinned VMs need cells; a spare host serves both pools of units."""
        services = (
            service(
                name="a",
                servers=8,
                cpu_percent=12,
                class_name="high-performance",
                used_memory_gb=14,
            ),
            service(name="b", servers=8, cpu_percent=10, used_memory_gb=4),
        )
        found = planned(*services, wishes=Wishes(survive=1))
        # 8 VMs of 20 vCPUs, or of 5; the other service shares the CPUs of one host.
        self.assertEqual(
            {"one VM per server": 17, "slots": 7, "cells": 4, "units": 6}, totals(found)
        )
        self.assertIn("cells: assumes classes of 5, 10, 20 vCPUs", found.remarks)

    def test_anti_affinity(self):
        alone = service(servers=6, shares_host=False, **BUSY)
        self.assertEqual(6, totals(planned(alone))["slots"])

    def test_most_vms_of_a_class_on_a_host(self):
        document = yaml.safe_load(loader.dump(POLICY)) | {"placement": "cells"}
        mine = document["classes"]["high-performance"]
        mine |= {"max_per_host": 1, "exclusive": "none"}
        other = mine | {"max_per_host": None, "flavors": {"name": "other"}}
        other["flavors"]["sizes"] = [{"vcpus": 20, "memory_gb": 64, "root_gb": 0}]
        # VMs of another class share the hosts, and have no limit.
        for name, of_class, hosts in (
            ("high-performance", mine, 10),
            ("other", other, 6),
        ):
            document["classes"][name] = of_class
            found = planned(
                service(servers=6, class_name="high-performance", **BUSY),
                service(name="b", servers=4, class_name=name, **BUSY),
                policy=loader.parse(json.dumps(document)),
            )
            self.assertEqual(hosts, totals(found)["cells"], name)

    def test_some_stay(self):
        voip = service(name="voip", servers=3, latency_sensitive=True)
        found = planned(service(servers=4, **BUSY), voip)
        self.assertEqual(
            (2, 3, 5), (found.own.hosts, found.own.staying, found.own.total)
        )
        self.assertEqual(
            "from 7 servers to 5 hosts: 29 % fewer; lower bound 5", found.sentence
        )

    def test_none_is_saved(self):
        found = planned(service(servers=2, cpu_percent=90, used_memory_gb=60))
        self.assertIn("from 2 servers to 2 hosts: none is saved", found.sentence)

    def test_a_service_stays_after_another_that_shared_its_hosts(self):
        """Half of each host is free beside VMs that keep apart, while these move."""
        redis = service(name="redis", servers=6, cpu_percent=20, used_memory_gb=100)
        redis = replace(redis, cpus=40, network_gbps=2)
        apart = service(name="hadoop", servers=8, cpu_percent=70, used_memory_gb=160)
        apart = replace(apart, cpus=40, network_gbps=5, shares_host=False)
        found = planned(redis, apart, network_gbps=1.0)
        self.assertEqual([None, None], [one.size for one in found.carried])
        self.assertLessEqual(max(totals(found).values()), 14)

    def test_services_that_waste_hosts_together_only(self):
        """Each has 12 VMs that keep apart; side by side they take 12 hosts."""
        services = [
            replace(service(name=name, servers=4, **BUSY), cpus=120, shares_host=False)
            for name in ("a", "b")
        ]
        found = planned(*services)
        self.assertEqual([None, None], [one.size for one in found.carried])
        self.assertIn("its 12 VMs would take 12 hosts", found.carried[0].reason)

    def test_hosts_too_small_for_a_class(self):
        found = planned(service(servers=2, **BUSY), model=replace(MODEL, memory_gb=10))
        self.assertEqual(2, found.own.staying)
        self.assertIn(
            "no flavor of high-performance fits a host of 2x20 CPUs and 10 GiB: the "
            "smallest is hp.20c.64g",
            list(notes(found)),
        )
        self.assertNotIn("no flavor of", "".join(planned(service()).remarks))

    def test_the_same_vms_are_packed_once(self):
        many = [service(name=f"s{n}", servers=2, **BUSY) for n in range(6)]
        with mock.patch.object(plans, "pack", wraps=plans.pack) as packed:
            planned(*many)
        asked = [str(call) for call in packed.call_args_list]
        self.assertEqual(len(set(asked)), len(asked))

    def test_a_service_stays_whose_vms_would_take_more_hosts(self):
        """A node of 8 CPUs takes one VM of 5 vCPUs; 6 of them do a server's work."""
        document = POLICY.as_document() | {"placement": "cells", "host_shape": "4x8"}
        document["classes"]["high-performance"] |= {
            "vcpus": 5,
            "exclusive": "none",
            "max_per_host": None,
            "flavors": {"name": "hp.{memory_gb}g", "memory_gb": [50]},
        }
        policy = loader.parse(yaml.safe_dump(document))
        large = service(servers=6, cpu_percent=72, used_memory_gb=60)
        small = service(name="small", servers=6, cpu_percent=12, used_memory_gb=14)
        model = replace(MODEL, shape=HostShape(4, 8))
        found = planned(large, small, model=model, policy=policy)
        self.assertEqual(
            ["its 36 VMs would take 9 hosts, and it has 6 servers", ""],
            [one.reason for one in found.carried],
        )
        self.assertEqual((1, 6), (found.own.hosts, found.own.staying))
        for ratio, of_arms in found.sensitivity.items():
            self.assertLessEqual(max(of_arms.values()), 12, ratio)

    def test_vms_that_keep_apart_share_hosts_with_others(self):
        """Each server's work takes two VMs, and each VM half a host."""
        apart = {"cpu_percent": 60, "used_memory_gb": 60, "shares_host": False}
        alone = service(name="a", servers=6, **apart)
        self.assertEqual(6, planned(alone).own.staying)
        found = planned(alone, service(name="b", servers=6, **apart))
        self.assertEqual((12, 0), (found.own.hosts, found.own.staying))

    def test_power_and_cost(self):
        model = replace(MODEL, watts=500, cost=9000)
        of = service(servers=4, watts=300, cost=5000, **BUSY)
        found = planned(of, model=model)
        self.assertEqual((1000, 18000), (found.own.watts, found.own.cost))
        self.assertIn(
            "; from 1,200 to 1,000 W; from 20,000 to 18,000 in cost", found.sentence
        )
        self.assertNotIn("not used", " ".join(notes(found)))
        found = planned(of, service(name="other", **BUSY), model=model)
        self.assertNotIn(" W", found.sentence)
        said = [*notes(found)]
        self.assertIn("--host-watts not used without watts of: other", said)
        self.assertIn("--host-cost not used without cost of: other", said)
        self.assertIn("watts not used without --host-watts", [*notes(planned(of))])

    def test_disks_limit_hosts(self):
        five = [
            test_disk.Figures(*one) for one in zip(*test_disk.FIVE["NAS"], strict=True)
        ]
        of = service(servers=11, cpu_percent=2, used_memory_gb=2, read_iops=50)
        for count, hosts in (("rule", 6), ("demonstrated", 3), ("extrapolated", 2)):
            limits = DiskLimits(test_disk.ALONE["NAS"], tuple(five), count)
            self.assertEqual(hosts, totals(planned(of, disk=limits))["slots"], count)

    def test_schemes_of_policies(self):
        for placement in ("slots", "units", "cells", "none"):
            policy = replace(POLICY, placement=placement)
            own = planned(service(**BUSY), policy=policy).own.name
            expected = "slots" if placement == "none" else placement
            self.assertEqual(expected, own)

    def test_without_a_pinned_class(self):
        general = replace(POLICY, classes=POLICY.classes[1:])
        found = planned(service(cpu_percent=5, used_memory_gb=4), policy=general)
        self.assertEqual(1, found.own.total)
        self.assertNotIn("units", totals(found))

    def test_mistakes(self):
        error = self.assertRaises(UnknownClassError, planned, service(class_name="hp"))
        self.assertIn("hp", str(error))
        self.assertRaises(
            PerfVMError, planned, service(), model=replace(MODEL, memory_gb=4)
        )

    def test_what_is_left_out_is_said(self):
        of = service(network_gbps=2, read_iops=9)
        small = service(name="small", cpu_percent=2, used_memory_gb=2)
        said = list(notes(planned(of, small)))
        for words in (
            "ratios: test; measured: no",
            "network_gbps not judged without --link-gbps: s",
            "read_iops not judged without --alone: s",
            "cpu_percent unknown, all of it assumed: s",
            "used_memory_gb unknown, all of it assumed: s",
        ):
            self.assertIn(words, said)
        self.assertTrue(any("ratio of pinned VMs: small" in line for line in said))
