# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random

import testtools

from nova_perfvm.policy import FlavorSize, FlavorTemplate, HostShape, loader
from nova_perfvm.sizing.carriers import Conditions, DiskLimits, carry, sizes_of
from nova_perfvm.sizing.hosts import HostModel, room
from nova_perfvm.sizing.ratios import DOCUMENTS, VMRatios
from nova_perfvm.sizing.services import Service
from tests.unit.sizing import test_disk

POLICY = loader.load()
HP, GENERAL = POLICY.classes


def sizes(shape="2x20", memory_gb=500):
    model = HostModel(HostShape.parse(shape), memory_gb)
    pinned = room(POLICY, model, "dedicated", (HP,))
    shared = room(POLICY, model, "shared", ())
    return [*sizes_of(HP, pinned), *sizes_of(GENERAL, shared)]


def service(**keys):
    return Service(**{"name": "s", "servers": 2, "cpus": 40, "memory_gb": 128} | keys)


def carried(of, cpu=1.0, known=None, **conditions):
    ratios = VMRatios("test", cpu=cpu, late="nobody measured")
    conditions = {"ratios": ratios} | conditions
    return carry(of, sizes() if known is None else known, Conditions(**conditions))


class SizesTest(testtools.TestCase):
    def test_whole_cores(self):
        """Nova gives a VM that requires threads no half of another VM's core."""
        flavors = FlavorTemplate("hp", sizes=(FlavorSize(5, 8, 0),))
        for threads, cpus, most in (("require", 6, 21), ("prefer", 5, 25)):
            vm_class = dataclasses.replace(
                HP,
                vcpus=5,
                smt="threads",
                cpu_thread_policy=threads,
                max_per_host=None,
                flavors=flavors,
            )
            model = HostModel(HostShape.parse("1x64x2"), 500)
            (size,) = sizes_of(vm_class, room(POLICY, model, "dedicated", (vm_class,)))
            self.assertEqual((cpus, most), (size.cell_cpus, size.per_host))


class CarryTest(testtools.TestCase):
    def test_the_sentence(self):
        redis = service(name="redis", cpu_percent=46, used_memory_gb=110, peak="p95")
        for ratios, headroom, factors in (
            (VMRatios("test", cpu=0.91), 0.0, "at ratio 0.91 needs 20.2: 2"),
            # Of a VM that beat its host.
            (VMRatios("test", cpu=1.2), 0.0, "at ratio 1 needs 18.4: 1"),
            (
                VMRatios("test", cpu=0.92, scale_out={8: 0.4}),
                0.1,
                "at ratio 0.92, 10 % headroom, scaling 0.813 needs 27.1: 2",
            ),
        ):
            conditions = Conditions(ratios, headroom)
            found = carry(redis, sizes(), conditions)
            self.assertEqual(
                f"redis: peak (p95) 46 % of 40 CPUs = 18.4; {factors} "
                f"hp.20c.{64 if found.vms > 1 else 128}g per server; limit: "
                f"{found.limit}",
                found.words(conditions),
            )
            self.assertEqual(2 * found.vms, found.all_vms)

    def test_what_carries_and_what_limits(self):
        growth = {"headroom": 0.25}
        link = {"network_gbps": 25}
        for _case, keys, conditions, expected in (
            ("small", {"cpu_percent": 5, "used_memory_gb": 4}, {}, "1 g.2c.4g CPU"),
            (
                "memory",
                {"cpu_percent": 5, "used_memory_gb": 9},
                {},
                "1 g.8c.16g memory",
            ),
            ("one", {"cpu_percent": 40, "used_memory_gb": 90}, {}, "1 hp.20c.128g CPU"),
            (
                "growth",
                {"cpu_percent": 45, "used_memory_gb": 60},
                growth,
                "2 hp.20c.64g CPU",
            ),
            (
                "the class that was asked for",
                {"cpu_percent": 5, "used_memory_gb": 4, "class_name": HP.name},
                {},
                "1 hp.20c.64g CPU",
            ),
            (
                "memory of two VMs",
                {"cpu_percent": 20, "memory_gb": 256},
                {},
                "2 hp.20c.128g memory",
            ),
            (
                "half of the link each",
                {"cpu_percent": 30, "used_memory_gb": 30, "network_gbps": 20},
                link,
                "2 hp.20c.64g network",
            ),
        ):
            found = carried(service(**keys), **conditions)
            self.assertEqual(expected, f"{found.vms} {found.size.flavor} {found.limit}")

    def test_what_stays_and_why(self):
        small = {"cpu_percent": 5, "used_memory_gb": 4}
        disk = DiskLimits(test_disk.ALONE["NAS"], (), "rule")
        for _case, keys, conditions, words in (
            (
                "latency",
                {"latency_sensitive": True},
                {},
                "latency-sensitive, and nobody measured",
            ),
            (
                "indivisible",
                {"divisible": False, "cpu_percent": 60, "memory_gb": 300},
                {},
                "more than one VM of hp.20c.200g: CPU 120 %, memory 150 %",
            ),
            (
                "network",
                small | {"divisible": False, "network_gbps": 20, "class_name": HP.name},
                {"network_gbps": 25},
                "network 160 %",
            ),
            (
                "disk",
                small | {"write_iops": 100, "divisible": False},
                {"disk": disk},
                "no VM gets its disk I/O",
            ),
            (
                "large VMs do less",
                {"class_name": HP.name},
                {"ratios": VMRatios("test", cpu=1.0, most_vcpus=15)},
                f"no flavor of class {HP.name} of at most 15 vCPUs fits the hosts",
            ),
            (
                "late, and small VMs are shared",
                {"latency_sensitive": True},
                {"ratios": VMRatios("test", cpu=1.0, most_vcpus=15, late="")},
                "no pinned flavor of at most 15 vCPUs fits the hosts",
            ),
        ):
            found = carried(service(**keys), **conditions)
            self.assertIsNone(found.size)
            self.assertIn(words, found.reason)
            sentence = found.words(Conditions(VMRatios("", cpu=1)))
            self.assertIn("stays on its servers", sentence)

    def test_latency_measured(self):
        ratios = VMRatios("test", cpu=1.0, late="")
        found = carried(service(latency_sensitive=True, cpu_percent=2), ratios=ratios)
        self.assertEqual(HP.name, found.size.class_name)

    def test_shapes_of_the_documents(self):
        """A VM of 20 vCPUs fits two nodes of 22 cores; nodes of 15 and 6 take none."""
        for shape, vms in (("2x22", 2), ("8x15", None), ("2x6", None), ("2x20", 2)):
            found = [s.per_host for s in sizes(shape) if s.class_name == HP.name]
            self.assertEqual({vms} - {None}, set(found), shape)

    def test_ly_gives_more_than_a_service_uses(self):
        generator = random.Random(1)
        for case in range(300):
            of = service(
                cpus=generator.choice([8, 20, 40, 64]),
                cpu_percent=generator.randint(1, 100),
                memory_gb=generator.choice([16, 64, 256, 500]),
            )
            found = carried(of, cpu=DOCUMENTS["ly"].cpu)
            size = found.size
            self.assertIsNotNone(size, f"{case}: {of}")
            self.assertGreater(found.vms * size.vcpus, of.used_cpus, f"{case}: {of}")
            self.assertGreaterEqual(
                found.vms * size.memory_gb, of.needed_memory_gb, f"{case}: {of}"
            )

    def test_rps_more_servers_do_less_each(self):
        """Ten VMs do what 6.17 do; two in place of each of five servers are too few."""
        rps = VMRatios("test", cpu=1.0, scale_out=DOCUMENTS["rps"].scale_out)
        of = service(servers=5, cpu_percent=80, used_memory_gb=30)
        self.assertEqual(2, carried(of).vms)
        found = carried(of, ratios=rps)
        linearity = DOCUMENTS["rps"].linearity
        self.assertEqual(3, found.vms)
        self.assertAlmostEqual(32 * linearity(5) / linearity(15), found.cpus)

    def test_disk_as_the_limit(self):
        """Of a host with room for five such VMs, the disk serves two by the rule."""
        limits = DiskLimits(test_disk.ALONE["NAS"], (), "rule")
        for reads, limit in ((50, "disk"), (10, "CPU")):
            of = service(cpu_percent=19, used_memory_gb=4, read_iops=reads)
            self.assertEqual(limit, carried(of, disk=limits).limit, reads)

    def test_disk_by_each_count(self):
        """KISTI's five VMs read 50 each; the SSD serves more than were measured."""
        of = service(cpu_percent=5, used_memory_gb=4, read_iops=50)
        for name, counts in (
            ("NAS", (2, 5, 7)),
            ("SAS", (4, 5, 7)),
            ("SSD", (59, 5, 176)),
        ):
            figures = test_disk.FIVE[name]
            five = tuple(test_disk.Figures(*one) for one in zip(*figures, strict=True))
            for count, vms in zip(
                ("rule", "demonstrated", "extrapolated"), counts, strict=True
            ):
                limits = DiskLimits(test_disk.ALONE[name], five, count)
                found = carried(of, disk=limits)
                self.assertAlmostEqual(1 / vms, found.disk_part, msg=f"{name} {count}")
