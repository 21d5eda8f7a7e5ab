# SPDX-License-Identifier: Apache-2.0


import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose.survey import ProposalError, pinned_sizes, propose
from nova_perfvm.facts.snapshot import RootVolume
from nova_perfvm.policy import Disk, HostShape, loader, policy_mistakes
from tests.unit.diagnose.survey import clouds
from tests.unit.facts.snapshot.clouds import blind


def proposed(cloud, vcpus=None):
    return propose(cloud.snapshot(), vcpus)


class SizesTest(testtools.TestCase):
    def test_the_largest_first(self):
        large, small = pinned_sizes(clouds.pools().snapshot())
        self.assertEqual((20, 3, 2, 60), (large.vcpus, len(large.servers), 2, 60))
        self.assertEqual((2, 60, 1), (large.hosts, large.cpus, large.cells))
        self.assertEqual(("db.20",), large.flavor_names)
        self.assertEqual("prefer", large.said(const.CPU_THREAD_POLICY))
        self.assertIsNone(small.said(const.MEM_PAGE_SIZE))
        self.assertEqual((4, 2), (small.vcpus, small.hosts))

    def test_flavors_without_servers_count(self):
        (size,) = pinned_sizes(clouds.odd().snapshot())
        self.assertEqual((40, 0, 2), (size.vcpus, size.cpus, size.cells))


class ProposeTest(testtools.TestCase):
    def test_each_is_one_that_policy_check_takes(self):
        for make in clouds.ALL:
            found = proposed(make())
            self.assertEqual([], policy_mistakes(found.policy))
            again = loader.parse(loader.dump(found.policy))
            self.assertEqual(found.policy, again)
            self.assertEqual("general", found.policy.default_class.name)

    def test_what_is_there_decides(self):
        found = proposed(clouds.pools())
        (vm_class,) = found.policy.pinned_classes
        self.assertEqual("labelled", found.policy.managed_hosts)
        self.assertEqual((HostShape(2, 20),), found.policy.host_shapes)
        self.assertEqual(
            (20, 1, 2, "prefer", "1GB", "host", "image"),
            (
                *(vm_class.vcpus, vm_class.numa_nodes, vm_class.max_per_host),
                *(vm_class.cpu_thread_policy, vm_class.mem_page_size),
                *(vm_class.exclusive, vm_class.disk.source),
            ),
        )
        (size,) = vm_class.flavors.sizes
        self.assertEqual((128, 20), (size.memory_gb, size.root_gb))
        small, specs = found.left_out
        self.assertIn("2 pinned VMs of 4 vCPUs", small)
        self.assertIn("hw:pci_numa_affinity_policy", specs)

    def test_sizes_that_share_hosts(self):
        found = proposed(clouds.mixed())
        self.assertEqual("cells", found.policy.placement)
        self.assertEqual(
            [("high-performance", 16), ("pinned-8", 8), ("pinned-4", 4)],
            [(c.name, c.vcpus) for c in found.policy.pinned_classes],
        )
        self.assertEqual(
            {("none", None, "2MB")},
            {
                (c.exclusive, c.max_per_host, c.mem_page_size)
                for c in found.policy.pinned_classes
            },
        )
        (others,) = found.left_out
        self.assertIn("1 pinned VM of 2 vCPUs", others)
        self.assertIn("16, 8, 4 vCPUs", found.why["placement"])

    def test_names_of_classes(self):
        """Those that flavors say, unless the policy could not tell classes apart."""
        generated = ["high-performance", "pinned-8", "pinned-4"]
        for what, said, expected, managed in (
            ("of all", ("a", "b", "c"), ["a", "b", "c"], "all"),
            ("of two sizes", ("hp", "hp", "c"), [*generated[:2], "c"], "labelled"),
            ("the default's", ("a", "general", "c"), ["a", "pinned-8", "c"], "all"),
            ("one size has none", ("a", None, "c"), ["a", "pinned-8", "c"], "labelled"),
            (
                "no name",
                ("a b", "b", "x" * 64),
                [generated[0], "b", "pinned-4"],
                "labelled",
            ),
            ("another's", ("pinned-8", None, "c"), [*generated[:2], "c"], "labelled"),
            ("one trait", ("a-b", "a_b", "c"), ["a-b", "pinned-8", "c"], "labelled"),
            ("as generated", (*generated,), generated, "all"),
        ):
            cloud = clouds.mixed()
            del cloud.servers["few"]
            for vcpus, name in zip((16, 8, 4), said, strict=True):
                flavor = f"c.{vcpus}"
                specs = cloud.flavors[flavor].extra_specs
                specs |= {const.CLASS_KEY: name} if name else {}
                for server in list(cloud.servers):
                    if cloud.servers[server].flavor == flavor:
                        cloud.change_server(server, extra_specs=specs)
            policy = proposed(cloud).policy
            self.assertEqual([], policy_mistakes(policy), what)
            found = {c.name: c.vcpus for c in policy.pinned_classes}
            self.assertEqual(dict(zip(expected, (16, 8, 4), strict=True)), found, what)
            self.assertEqual(managed, policy.managed_hosts, what)
            alone = proposed(cloud, 8).policy
            (vm_class,) = alone.pinned_classes
            own = said[1] not in {None, "general"}
            self.assertEqual(said[1] if own else generated[0], vm_class.name, what)

    def test_one_size_of_them_by_request(self):
        found = proposed(clouds.mixed(), 8)
        self.assertEqual("slots", found.policy.placement)
        self.assertEqual([8], [c.vcpus for c in found.policy.pinned_classes])

    def test_a_size_that_hardly_anybody_has(self):
        cloud = clouds.pools()
        cloud.add_flavor("one", 40, 64, clouds.PINNED)
        cloud.add_host("big", shape="2x40")
        cloud.add_pinned("x", "big", "one")
        # 40 of 108 pinned CPUs
        self.assertEqual(40, proposed(cloud).policy.pinned_classes[0].vcpus)
        for number in range(30):
            cloud.add_host(f"more{number}")
            cloud.add_pinned(f"m{number}", f"more{number}", "db.20")
        self.assertEqual(20, proposed(cloud).policy.pinned_classes[0].vcpus)

    def test_another_size_by_request(self):
        (vm_class,) = proposed(clouds.pools(), 4).policy.pinned_classes
        self.assertEqual((4, 10), (vm_class.vcpus, vm_class.max_per_host))
        (vm_class,) = proposed(clouds.empty(), 30).policy.pinned_classes
        # More than a node's cores: two nodes are better than threads.
        self.assertEqual((30, 2), (vm_class.vcpus, vm_class.numa_nodes))
        exc = self.assertRaises(ProposalError, proposed, clouds.pools(), 200)
        self.assertIn("no host of 2x20 has room", str(exc))

    def test_without_pinned_vms_a_whole_node(self):
        found = proposed(clouds.shared_only())
        (vm_class,) = found.policy.pinned_classes
        self.assertEqual((24, 1), (vm_class.vcpus, vm_class.numa_nodes))
        self.assertEqual("2x24", str(found.policy.host_shapes[0]))
        # 500 GiB for two slots, and 4 of each node for the host.
        self.assertEqual(
            ("hp.24c.60g", "hp.24c.120g", "hp.24c.244g"), vm_class.flavor_names
        )
        self.assertEqual("all", proposed(clouds.empty()).policy.managed_hosts)

    def test_one_small_host_makes_no_small_flavors_of_all(self):
        cloud = clouds.shared_only()
        cloud.add_host("small", "open", "2x24", 64)
        (vm_class,) = proposed(cloud).policy.pinned_classes
        self.assertEqual(
            ("hp.24c.28g", "hp.24c.60g", "hp.24c.120g", "hp.24c.244g"),
            vm_class.flavor_names,
        )

    def test_general_flavors(self):
        many, volumes, bare = clouds.empty(), clouds.empty(), clouds.empty()
        for number in range(1, 21):
            many.add_flavor(f"f{number}", number, 4)
            for index in range(number):
                many.add_shared(f"{number}-{index}", "h0", f"f{number}")
        volumes.add_flavor("v", 4, 8, disk_gb=0)
        for name in "ab":
            volumes.add_shared(name, "h0", "v", image=None)
        volumes.add_shared("c", "h0")
        bare.flavors = {}
        ours = clouds.shared_only()
        ours.add_flavor("g.8c.16g", 8, 16, {const.CLASS_KEY: "general"})
        for what, cloud, source, names in (
            ("in use", clouds.shared_only(), "image", {"g.2c.4g"}),
            ("not in use", clouds.empty(), "image", {"g.2c.4g"}),
            ("boot from volumes", volumes, "volume", {"g.2c.4g", "g.4c.8g"}),
            ("most used", many, "image", {f"g.{n}c.4g" for n in range(5, 21)}),
            ("of a policy", ours, "image", {"g.8c.16g"}),
            ("none", bare, "image", set(loader.load().default_class.flavor_names)),
        ):
            general = proposed(cloud).policy.default_class
            found = (general.disk.source, set(general.flavor_names))
            self.assertEqual((source, names), found, what)
        self.assertIn("4 sizes that fewer general VMs have", proposed(many).left_out)

    def test_root_disks_of_two_sizes(self):
        cloud = clouds.empty()
        cloud.add_flavor("larger", 2, 4, disk_gb=80)
        names = proposed(cloud).policy.default_class.flavor_names
        self.assertEqual(("g.2c.4g.20g", "g.2c.4g.80g"), names)

    def test_volume_types(self):
        root = RootVolume("v", "i-a", "slow")
        for what, types, volumes, expected in (
            ("no Cinder", None, (), None),
            ("no type", (), (), None),
            ("the only one", ("fast",), (), "fast"),
            ("beside the default", ("__DEFAULT__", "fast"), (), "fast"),
            ("the default alone", ("__DEFAULT__",), (), "__DEFAULT__"),
            ("several", ("fast", "slow"), (), None),
            ("in use", ("fast", "slow"), (root,), "slow"),
        ):
            cloud = clouds.empty()
            cloud.add_flavor("db", 16, 64, clouds.PINNED, disk_gb=0)
            cloud.add_host("p1", shape="2x16")
            cloud.add_pinned("a", "p1", "db")
            cloud.parts |= {"volume_types": types, "root_volumes": volumes}
            found = proposed(cloud)
            (vm_class,) = found.policy.pinned_classes
            self.assertEqual(Disk("volume", expected), vm_class.disk, what)
            for name in types or ():
                seen = expected or found.why["volume_type"]
                self.assertTrue(expected or name in seen, what)

    def test_hosts_divided_by_node_and_vms_of_threads(self):
        (vm_class,) = proposed(clouds.divided()).policy.pinned_classes
        self.assertEqual("cell", vm_class.exclusive)
        self.assertEqual("isolate", vm_class.emulator_threads)
        (vm_class,) = proposed(clouds.threads()).policy.pinned_classes
        self.assertEqual(
            ("threads", "require"), (vm_class.smt, vm_class.cpu_thread_policy)
        )

    def test_what_contradicts_is_left_out_in_its_own_words(self):
        found = proposed(clouds.odd())
        (vm_class,) = found.policy.pinned_classes
        self.assertEqual(
            (2, None, None, None),
            (
                *(vm_class.numa_nodes, vm_class.cpu_thread_policy),
                *(vm_class.emulator_threads, vm_class.mem_page_size),
            ),
        )
        left_out = " ".join(found.left_out)
        self.assertIn("cpu_thread_policy: isolate pins the sibling", left_out)
        self.assertIn("(with one for emulator_threads: isolate; ", left_out)

    def test_a_cloud_that_shows_nothing(self):
        found = blind(clouds.pools().snapshot())
        exc = self.assertRaises(ProposalError, propose, found)
        self.assertIn("nova-perfvm host collect", str(exc))
