# SPDX-License-Identifier: Apache-2.0

import inspect
import json
import pathlib
import re
from dataclasses import replace

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import guest as guest_package
from nova_perfvm.measure.checks import host as host_package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.prove import page, promise, record, regression
from nova_perfvm.measure.prove.inputs import UUID, InputsError, cpu_models
from nova_perfvm.measure.prove.judge import CHECKS
from tests.directory import DirectoryCase
from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import faults, planted, sound
from tests.unit.measure.prove.sound import Case
from tests.unit.page_elements import Elements

CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


class CertifyTestCase(DirectoryCase):
    def save(self, found, name="before.json"):
        path = self.directory / name
        path.write_text(record.dumps(found))
        return str(path)

    def planted(self, name):
        """Return a case with a fault."""
        case = Case()
        planted.BY_NAME[name].plant(case)
        return case


class CPUModelsTest(testtools.TestCase):
    def test_what_cpuinfo_names(self):
        whole = "processor\t: 0\nmodel name\t: A 2.40\n\nprocessor\t: 1\n"
        for text, expected in (
            (f"{whole}model name\t: 7.3\naddress sizes\t: ", {"A 2.40", "7.3"}),
            (whole, {"A 2.40"}),
            ("", set()),
            (f"{whole}model na", {"A 2.40"}),
        ):
            host = guests.having(hosts.host(), {"/proc/cpuinfo": text})
            self.assertEqual(expected, cpu_models(host), text)


class SoundTest(CertifyTestCase):
    """What lacks something that nothing rests on is certified nevertheless."""

    def assert_certified(self, case):
        judged, found = case.made(self.directory)
        self.assertEqual((), judged.reasons)
        self.assertIs(Level.OK, judged.level)
        self.page = page.html(found, judged.comparisons)
        return found

    def test_what_may_be_missing(self):
        without_conf, not_by_root, warmed_up, switch = Case(), Case(), Case(), Case()
        faults.host({faults.CONF: None})(without_conf)
        for vm in (1, 2):
            faults.guest(vm, {UUID: None})(not_by_root)
            # Interfaces of a switch in user space.
            faults.xml(vm, ("type='bridge'", "type='vhostuser'"))(switch)
            thread = faults.task(vm, 2)
            names = ("comm", "status", "cgroup")
            faults.host({f"{thread}/{name}": None for name in names})(switch)
        warmed_up.run["steps"][0]["warm_up"] = True
        warmed_up.run["steps"][0]["beside"]["node0"].update(cpu_s=100, most_s=100)
        for case in (without_conf, not_by_root, warmed_up, switch):
            self.assert_certified(case)

    def test_with_a_snapshot(self):
        self.assert_certified(Case(snapshot=hosts.snapshot()))
        other = hosts.server(2, extra_specs={"perfvm:class": "general"})
        case = Case(snapshot=hosts.snapshot(hosts.server(1), other))
        judged, _ = case.made(self.directory)
        self.assertIn("hypervisor.class_rules", {one.code for one in judged.reasons})
        self.assertIs(Level.FAILURE, judged.level)

    def test_a_host_that_isolates_vms_so_well_that_no_time_is_stolen(self):
        case = Case()
        for vm in (1, 2):
            faults.unstolen(vm)(case)
        found = self.assert_certified(case)
        words = json.dumps(found["checks"])
        self.assertEqual(2, words.count("at 0 since boot"))
        self.assertEqual(2, words.count("hypervisor.vcpu_wait: vCPU 0 waited 0.1%"))
        # As a record before it counts as passed, too.
        path = self.save(found)
        judged, _ = case.made(self.directory, previous=path)
        self.assertEqual((), judged.reasons)

    def test_warnings_are_listed_and_refuse_nothing(self):
        case = Case()
        faults.guest(1, {CLOCK: "hpet\n"})(case)
        self.assert_certified(case)
        warnings = self.page.partition("<h2>Warnings</h2>")[2]
        self.assertIn("hpet", warnings.partition("</ul>")[0])

    def test_a_figure_that_is_no_endpoint_only_warns(self):
        for metric, threads in (
            ("cpu.latency_p95_ms", 20),
            ("cpu.events_per_second", 1),
        ):
            factor = 20 if "latency" in metric else 0.05
            case = Case()
            faults.scaled("vm2", metric, factor, threads)(case)
            found = self.assert_certified(case)
            (warning,) = [w for w in found["warnings"] if "no endpoint" in w]
            self.assertIn(f"{metric}, {threads} thread", warning)

    def test_verdicts(self):
        for name, verdict in (
            ("vm1: 4 queues on the host", Level.FAILURE),
            (
                "vm2: cpu.events_per_second with 20 threads 20 times worse",
                Level.FAILURE,
            ),
            ("vm1: its pages were not read", Level.UNKNOWN),
            ("3 rounds only", Level.UNKNOWN),
            ("vm2: its file is missing", Level.UNKNOWN),
            ("node0: what VMs did is noted of no step", Level.UNKNOWN),
        ):
            judged, _ = self.planted(name).made(self.directory)
            self.assertIs(verdict, judged.level, name)


# What a check cannot tell, and need not: (its module, the cause).
CAUSES = {
    ("consistency", "HARDWARE_DECIDES"),
    ("cpu_sets", "NOVA_SETS_UNKNOWN"),
    ("cpu_sets", "OTHERS_MAY_COME"),
    ("cpu_sets", "POWERED_DOWN"),
    ("cpu_sets", "VMS_OWN_ALL"),
    ("irq_affinity", "VMS_OWN_ALL"),
    ("memory", "NO_HUGE_PAGES"),
    ("nic_vectors", "NO_MULTIQUEUE"),
    ("nic_vectors", "ONE_CPU"),
    ("nic_vectors", "ONE_QUEUE"),
    ("nic_vectors", "TOO_FEW_INTERRUPTS"),
    ("numa_nodes", "FLAVORS_UNKNOWN"),
    ("numa_nodes", "NO_CPU"),
    ("shape", "ANY_NUMBER"),
    ("shape", "NO_WHOLE_CORES"),
    ("steal", "NEVER_STOLEN"),
    ("vcpus", "CLASS_UNKNOWN"),
    ("vcpus", "NO_WHOLE_CORES"),
    ("virtual_machine", "HARDWARE_DECIDES"),
}


class EvidenceTest(testtools.TestCase):
    def test_each_check_is_in_the_table(self):
        checks = (*CHECKS, *checks_of(host_package), *checks_of(guest_package))
        self.assertEqual({c.code for c in checks}, set(promise.EVIDENCE))
        # What never is needed says why.
        self.assertEqual([], [c for c, e in promise.EVIDENCE.items() if not e.why])

    def test_causes_are_those_that_leave_nothing_to_prove(self):
        root = pathlib.Path(inspect.getfile(host_package)).parents[2]
        given = {
            (path.stem, cause)
            for path in root.rglob("*.py")
            for cause in re.findall(r"Cause\.([A-Z_]+)", path.read_text())
            if path.stem != "judge"
        }
        self.assertEqual(CAUSES, given)


class RecordTest(CertifyTestCase):
    def test_what_it_says(self):
        _, found = Case().made(self.directory, signed_off_by="Kim <b>")
        self.assertEqual(found, record.read(self.save(found)))
        self.assertEqual("Kim <b>", found["signed_off_by"])
        self.assertEqual(sound.FLAVOR, found["promised"]["flavor"])
        words = "each vCPU has a core of its own, and nobody else runs there"
        self.assertIn(words, found["promised"]["words"])
        self.assertEqual(list(hosts.UUIDS[:2]), [vm["uuid"] for vm in found["vms"]])
        self.assertEqual(["3.12"], found["tools"]["iperf3"])
        roles = [one["role"] for one in found["inputs"]]
        self.assertEqual(["policy", "host", "guest", "guest", "samples"], roles)
        self.assertTrue(all(len(one["sha256"]) == 64 for one in found["inputs"]))
        self.assertTrue(all(row["vs_host"]["low"] for row in found["comparisons"]))

    def test_a_change_is_noticed(self):
        _, found = self.planted("vm1: 4 queues on the host").made(self.directory)
        for change in (
            {"verdict": "certified"},
            {"reasons": []},
            {"signed_off_by": "Lee"},
            {"sha256": "0" * 64},
        ):
            path = self.save(found | change)
            error = self.assertRaises(DocumentError, record.read, path)
            self.assertIn("the record was changed", str(error))

    def test_what_is_no_record(self):
        for text in ("", "{}", "[]", '{"schema_version": "1.0"}', '{"a": NaN}'):
            path = self.directory / "x.json"
            path.write_text(text)
            error = self.assertRaises(DocumentError, record.read, path)
            self.assertIn("x.json", str(error))


class PageTest(CertifyTestCase):
    def test_it_is_whole_escaped_and_begins_with_the_verdict(self):
        case = Case()
        evil = "<script>alert(1)</script>"
        case.host = hosts.renamed(case.host, 1, evil)
        judged, found = case.made(self.directory, signed_off_by=evil)
        text = page.html(found, judged.comparisons)
        self.assertNotIn("<script", text)
        self.assertIn("&lt;script&gt;alert(1)", text)
        (_, body) = text.split("<body>")
        self.assertLess(body.index('class="verdict ok">certified'), 200)
        self.assertEqual([], Elements(text).faults)
        self.assertIn("default-src 'none'", text)
        # Why it is refused comes before what was promised.
        judged, found = self.planted("vm1: 4 queues on the host").made(self.directory)
        text = page.html(found, judged.comparisons)
        self.assertIn('class="verdict failure">refused', text)
        why = text.index("hypervisor.interface_queues")
        self.assertLess(why, text.index("Promised"))


class PreviousTest(CertifyTestCase):
    def setUp(self):
        super().setUp()
        _, self.before = Case().made(self.directory)
        self.path = self.save(self.before)

    def made(self, case):
        return case.made(self.directory, previous=self.path)

    def test_the_same_again(self):
        judged, found = self.made(Case())
        self.assertIs(Level.OK, judged.level)
        self.assertEqual(0, found["previous"]["regressions"])
        self.assertEqual(self.before["sha256"], found["previous"]["sha256"])

    def test_what_was_better(self):
        latency, not_primary = "scheduling.latency_p99_9_us", "cpu.latency_p95_ms"
        refused, not_proven = Level.FAILURE, Level.UNKNOWN
        for plant, verdict, subject in (
            # Passed, and does not now.
            (faults.guest(1, {CLOCK: "hpet\n"}), refused, "guest.clocksource"),
            (faults.guest(1, {CLOCK: None}), not_proven, "guest.clocksource"),
            # Lower beyond chance.
            *(
                (faults.scaled("vm1", metric, by), refused, metric)
                for metric, by in (
                    ("cpu.events_per_second", 0.85),
                    ("network.bits_per_second", 0.9),
                    (latency, 1.15),
                )
            ),
            # Not measured any more.
            (
                faults.without(lambda m: m.metric == not_primary),
                *(not_proven, not_primary),
            ),
        ):
            case = Case()
            plant(case)
            judged, found = self.made(case)
            self.assertIs(verdict, judged.level)
            self.assertEqual({regression.CODE}, {r.code for r in judged.reasons})
            self.assertTrue(all(subject in r.subject for r in judged.reasons))
            self.assertEqual(len(judged.reasons), found["previous"]["regressions"])
            # Without the record before it keeps its promise.
            alone, _ = case.made(self.directory)
            self.assertIs(Level.OK, alone.level)

    def test_a_ratio_that_is_better_or_as_good_by_chance(self):
        for factor in (0.99, 1.0, 1.02):
            case = Case()
            faults.scaled("vm1", "cpu.events_per_second", factor)(case)
            judged, _ = self.made(case)
            self.assertEqual((), judged.reasons)

    def test_another_policy_and_host_are_noted(self):
        case = Case(policy=sound.policy_document(managed_hosts="labelled"))
        case.host = replace(case.host, hostname="compute7")
        for who in ("node0", "node1"):
            case.run["sessions"][0]["targets"][who]["hostname"] = "compute7"
        judged, found = self.made(case)
        self.assertIs(Level.OK, judged.level)
        remarks = found["previous"]["remarks"]
        self.assertEqual("host: compute1 before, compute7 now", remarks[0])
        self.assertIn("policy", remarks[1])

    def test_a_record_of_another_flavor(self):
        case = self.planted("flavor hp.20c.64g is asked for")
        error = self.assertRaises(PerfVMError, self.made, case)
        self.assertIn("the same flavor", str(error))

    def test_mistakes_of_all_files_at_once(self):
        pathlib.Path(self.path).write_text(
            json.dumps(self.before | {"verdict": "refused"})
        )
        case = Case(texts={"host.json": lambda _: "{", "samples.json": lambda _: None})
        error = self.assertRaises(InputsError, self.made, case)
        for name in ("host.json", "samples.json", "before.json"):
            self.assertIn(name, str(error))
