# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.facts import PagePool, RequestCell
from nova_perfvm.scheduler import adapters
from tests.unit.scheduler import states


class RequestFactsTest(testtools.TestCase):
    def test_a_high_performance_request(self):
        facts = adapters.request_facts(states.request_spec())
        self.assertEqual("high-performance", facts.class_name)
        self.assertEqual((RequestCell(0, 20, 65536),), facts.cells)
        self.assertTrue(facts.pinned and facts.multiqueue and facts.volume_backed)

    def test_an_image_that_pins_is_seen_with_a_plain_flavor(self):
        image = {"hw_cpu_policy": "dedicated"}
        spec = states.request_spec(vcpus=4, extra_specs={}, image_props=image)
        facts = adapters.request_facts(spec)
        self.assertIsNone(facts.class_name)
        self.assertTrue(facts.pinned)

    def test_multiqueue_of_flavor_and_image(self):
        specs = {k: v for k, v in states.HP_SPECS.items() if "multiqueue" not in k}
        on, off = ({"hw_vif_multiqueue_enabled": value} for value in (True, False))
        for extra_specs, image, expected in (
            (specs, {}, False),
            (specs, on, True),
            (specs, off, False),
            # They contradict each other.
            (states.HP_SPECS, off, False),
        ):
            spec = states.request_spec(extra_specs=extra_specs, image_props=image)
            self.assertEqual(expected, adapters.request_facts(spec).multiqueue)

    def test_requests_that_do_not_know_their_boot_source(self):
        spec = states.request_spec(is_bfv=None)
        self.assertIsNone(adapters.request_facts(spec).volume_backed)

    def test_page_size_and_policies(self):
        facts = adapters.request_facts(
            states.request_spec(
                extra_specs=states.HP_SPECS
                | {
                    "hw:mem_page_size": "1GB",
                    "hw:emulator_threads_policy": "isolate",
                    "hw:cpu_thread_policy": "prefer",
                }
            )
        )
        self.assertEqual("isolate", facts.emulator_threads)
        self.assertEqual((RequestCell(0, 20, 65536, 1048576, "prefer"),), facts.cells)


class HostFactsTest(testtools.TestCase):
    def test_page_pools_that_do_not_tell_what_is_reserved(self):
        """Nova takes 0: nova.objects.numa, NUMAPagesTopology.free."""
        topology = states.numa_topology(mempages=[(4, 1000, 10, 100)])
        for cell in topology.cells:
            (pool,) = cell.mempages
            delattr(pool, "_obj_reserved")
        (cell, _) = adapters.host_facts(states.host_state(topology=topology)).cells
        self.assertEqual([PagePool(4, 1000, 10)], list(cell.mempages))
        self.assertNotIn("reserved", pool)
        self.assertEqual(990, pool.free)

    def test_cells(self):
        topology = states.numa_topology(mempages=[(4, 1000, 10, 100)])
        topology.cells[0].pin_cpus({0, 1})
        topology.cells[0].memory_usage = 5
        facts = adapters.host_facts(
            states.host_state(topology=topology, vcpus_used=2, num_instances=1)
        )
        self.assertEqual(("hp1", "hp1", 2, 1), (*facts[:2], *facts[3:5]))
        cell = facts.cells[0]
        self.assertEqual(({0, 1}, 18), (cell.pinned_cpus, len(cell.free_pcpus)))
        self.assertEqual((256000, 5), (cell.memory_mb, cell.memory_usage_mb))
        # Reserved pages are not for VMs.
        self.assertEqual([PagePool(4, 900, 10)], list(cell.mempages))
        self.assertEqual((1, 10), (len(cell.mempages), cell.mempages[0].used))

    def test_hosts_without_a_topology(self):
        state = states.host_state()
        state.numa_topology = None
        self.assertEqual((), adapters.host_facts(state).cells)

    def test_labels_of_all_aggregates(self):
        state = states.host_state(labels=["general", "high-performance, other", " "])
        self.assertEqual(
            {"general", "high-performance", "other"}, adapters.host_facts(state).labels
        )
