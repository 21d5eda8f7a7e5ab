# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.diagnose.survey import collected, survey
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import COLLECTED
from nova_perfvm.measure.collect import hypervisor
from nova_perfvm.measure.collect.collected import Collected, CommandOutput
from nova_perfvm.measure.observed import domains
from tests.unit.measure import hosts


def commands(*xmls):
    """Return what virsh says of VMs with the numbers 1, 2..."""
    uuids = hosts.UUIDS[: len(xmls)]
    found = {domains.LIST: "".join(f"{uuid}\n" for uuid in uuids)}
    found |= {domains.dumpxml(u): x for u, x in zip(uuids, xmls, strict=True)}
    return {line: CommandOutput(0, text) for line, text in found.items()}


def host(name, *xmls):
    """Return what was collected on a host of 2x20 with some VMs."""
    return Collected(
        "host",
        name,
        "2026-11-22T10:00:00+00:00",
        files=hosts.topology(cores=20),
        commands=commands(*xmls),
    )


def as_snapshot(*hosts):
    return collected.as_snapshot([hypervisor.facts(one) for one in hosts])


class AsSnapshotTest(testtools.TestCase):
    def test_a_host_of_pinned_vms(self):
        found = as_snapshot(
            host("h1", hosts.domain_xml(1, specs={}), hosts.domain_xml(2))
        )
        (mine,) = found.hosts
        self.assertEqual(("h1", "2x20"), (mine.host, str(mine.shape)))
        self.assertEqual(COLLECTED, mine.cells_source)
        # Each VM that runs there owns its CPUs.
        self.assertEqual([20, 20], [len(cell.pcpuset) for cell in mine.cells])
        self.assertEqual([0, 0], [len(cell.cpuset) for cell in mine.cells])
        first, second = found.servers
        self.assertEqual(("rgw1", True), (first.name, first.pinned))
        self.assertEqual("dedicated", first.extra_specs["hw:cpu_policy"])
        self.assertEqual(set(range(20, 40)), second.pinned_cpus)
        (cell,) = second.cells
        self.assertEqual(1, cell.host_node)
        (provider,) = found.providers
        self.assertEqual((40, 40), (provider.total("PCPU"), provider.used("PCPU")))
        # It is a snapshot as any other.
        self.assertEqual(found, snapshot.loads(snapshot.dumps(found)))

    def test_a_host_of_both_kinds(self):
        found = as_snapshot(
            host("h1", hosts.domain_xml(1), hosts.general_xml(2, "20-39"))
        )
        first, second = found.hosts[0].cells
        self.assertEqual((20, 0), (len(first.pcpuset), len(first.cpuset)))
        self.assertEqual((0, 20), (len(second.pcpuset), len(second.cpuset)))
        self.assertFalse(found.servers[1].pinned)
        self.assertIn("nova.conf was not collected", " ".join(found.gaps))

    def test_a_host_without_vms_is_open(self):
        (mine,) = as_snapshot(host("h1")).hosts
        self.assertEqual(mine.cells[0].cpuset, mine.cells[0].pcpuset)

    def test_a_survey_of_two(self):
        found = survey(
            as_snapshot(host("h1", hosts.domain_xml(1, specs={})), host("h2"))
        )
        slots = found.slots
        self.assertEqual((1, 1, 0), (slots.used, slots.free, slots.unfit))
        self.assertEqual(2, found.possible)
        self.assertEqual(20, found.vm_class.vcpus)
        self.assertIn("Placement", [gap.subject for gap in found.gaps])

    def test_a_host_of_which_a_cpu_is_offline(self):
        one = host("h1")
        files = one.files | {f"{hosts.CPU}/online": "0-38\n"}
        del files[f"{hosts.CPU}/cpu39/topology/thread_siblings_list"]
        files[f"{hosts.NODE}/node1/cpulist"] = "20-38\n"
        one = dataclasses.replace(one, files=files)
        found = survey(as_snapshot(one))
        (mine,) = found.hosts
        self.assertEqual(("20 + 19 cores", 1), (mine.shape, mine.possible))
        self.assertEqual(["2x20"], list(map(str, found.policy.host_shapes)))
        self.assertEqual(20, found.vm_class.vcpus)
        gaps = [gap.observed for gap in found.gaps if gap.subject == "h1"]
        self.assertIn("20 + 19 cores, and CPUs 39 are offline: bring", gaps[0])
        # Beside another host it is counted by what it has, too.
        found = survey(as_snapshot(one, host("h2")))
        self.assertEqual([1, 2], [each.possible for each in found.hosts])
        self.assertEqual(["2x20"], list(map(str, found.policy.host_shapes)))

    def test_a_node_without_memory_has_no_slot(self):
        one = host("h1")
        files = one.files | {f"{hosts.NODE}/node1/meminfo": "Node 1 MemTotal: 0 kB\n"}
        found = survey(as_snapshot(dataclasses.replace(one, files=files)))
        self.assertEqual(1, found.possible)
        self.assertEqual(2, survey(as_snapshot(host("h1"))).possible)

    def test_one_that_tells_nothing_is_a_gap(self):
        blind = dataclasses.replace(host("h2"), files={}, commands={})
        found = as_snapshot(host("h1"), blind)
        self.assertEqual(["h1"], [one.host for one in found.hosts])
        self.assertTrue(any(gap.startswith("h2: ") for gap in found.gaps))
        exc = self.assertRaises(PerfVMError, as_snapshot, blind)
        self.assertIn("h2: ", str(exc))
        both = (host("h1"), host("h1"))
        exc = self.assertRaises(PerfVMError, as_snapshot, *both)
        self.assertIn("h1 was collected more than once", str(exc))
