# SPDX-License-Identifier: Apache-2.0

import inspect
import pathlib
import re
from collections import Counter
from dataclasses import replace

import testtools

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import guest as guest_package
from nova_perfvm.measure.checks import host as host_package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.prove import promise
from nova_perfvm.measure.prove.inputs import UUID, cpu_models
from nova_perfvm.measure.prove.judge import CHECKS
from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import faults, planted
from tests.unit.measure.prove.sound import CPU, Case
from tests.unit.rules.hosts import HP

ARM = """\
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def with_fault(name):
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
            (
                f"processor\t: 0\n{ARM}\nprocessor\t: 1\n{ARM}",
                {"0x41 0xd0c"},
            ),
        ):
            host = guests.having(hosts.host(), {"/proc/cpuinfo": text})
            self.assertEqual(expected, cpu_models(host), text)


class SoundTest(testtools.TestCase):
    """What lacks something that nothing rests on is proven nevertheless."""

    def assert_proven(self, case):
        judged = case.judged()
        self.assertEqual(((), ()), (judged.reasons, judged.no_proof))
        self.assertTrue(judged.proven)
        self.assertEqual(("PROVEN", 0), (judged.verdict, judged.exit_status))
        return judged

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
        for step in warmed_up.run["steps"]:
            if step["warm_up"] and step["beside"]:
                step["beside"]["node0"].update(cpu_s=100, most_s=100)
        for case in (without_conf, not_by_root, warmed_up, switch):
            self.assert_proven(case)

    def test_hosts_and_guests_of_arm(self):
        """They name no model and no flags, and KVM knows no CPU but the host's."""
        case = Case()
        cpu = {"/proc/cpuinfo": f"processor\t: 0\n{ARM}\n"}
        for plant in (faults.host(cpu), faults.guest(1, cpu), faults.guest(2, cpu)):
            plant(case)
        for session in case.run["sessions"]:
            for look in session["targets"].values():
                look["collected"]["files"] |= cpu
        case.measured = [
            replace(m, machine=replace(m.machine, cpu_model="0x41 0xd0c"))
            for m in case.measured
        ]
        self.assert_proven(case)

    def test_a_host_of_two_cpu_models(self):
        """A target tells the model of its first CPU alone."""
        case = Case()
        path = "/proc/cpuinfo"
        text = case.host.files[path]
        other = text.replace(CPU, "Xeon Gold 6230")
        self.assertNotEqual(text, other)
        cpus = {path: f"{text}\n{other}"}
        faults.host(cpus)(case)
        for session in case.run["sessions"]:
            for name in ("node0", "node1"):
                session["targets"][name]["collected"]["files"] |= cpus
        self.assert_proven(case)

    def test_a_host_that_isolates_vms_so_well_that_no_time_is_stolen(self):
        case = Case()
        for vm in (1, 2):
            faults.unstolen(vm)(case)
        judged = self.assert_proven(case)
        words = " ".join(
            one.observed
            for section in judged.sections
            for one in section.report.findings
        )
        self.assertEqual(2, words.count("at 0 since boot"))
        self.assertEqual(2, words.count("hypervisor.vcpu_wait: vCPU 0 waited 0.1%"))

    def test_warnings_are_listed_and_refute_nothing(self):
        case = Case()
        faults.always(1, {CLOCK: "hpet\n"})(case)
        judged = case.judged()
        self.assertEqual("PROVEN with 1 condition", judged.verdict)
        self.assertEqual((True, 0), (judged.proven, judged.exit_status))
        (condition,) = judged.conditions
        self.assertIn("hpet", condition.observed)

    def test_settings_that_do_not_flatter_a_guest_are_conditions(self):
        pages = "/sys/kernel/mm/transparent_hugepage/enabled"
        mitigations = f"{hosts.CPU}/vulnerabilities"
        attempted = "Vulnerable: Clear CPU buffers attempted, no microcode\n"
        for plant, words in (
            (faults.always(1, {pages: "always madvise [never]\n"}), "never in the"),
            (faults.always(1, {f"{mitigations}/meltdown": "Mitigation: PTI"}), "PTI"),
            (faults.always(1, {f"{mitigations}/mds": None}), "mds: not told"),
            (faults.always(1, {f"{mitigations}/mds": attempted}), "attempted"),
            (
                faults.always(
                    1, {f"{mitigations}/spectre_v2": "Mitigation: Retpolines"}
                ),
                "Retpolines in the guest",
            ),
        ):
            case = Case()
            plant(case)
            judged = case.judged()
            self.assertEqual("PROVEN with 1 condition", judged.verdict)
            self.assertIn(words, judged.conditions[0].observed)

    def test_conditions_are_the_warnings_that_speak_of_endpoints(self):
        """Of disks only where the class promises what they do."""
        promised = replace(HP.disk, read_iops=9000, write_iops=9000)
        for policy, codes in (
            ({}, set()),
            ({"disk": promised}, {"hypervisor.io_limits"}),
        ):
            case = Case()
            faults.policy(**policy)(case)
            judged = case.judged()
            self.assertEqual(codes, {one.code for one in judged.conditions})
        case = Case()
        faults.altered(
            lambda m: m.machine.kind == "guest",
            lambda m: {"machine": replace(m.machine, kernel="6.1.0")},
        )(case)
        for vm in (1, 2):
            faults.guest(vm, {"/proc/sys/kernel/osrelease": "6.1.0\n"})(case)
        judged = case.judged()
        self.assertEqual("PROVEN with 1 condition", judged.verdict)
        self.assertIn("kernel", judged.conditions[0].observed)

    def test_a_figure_that_is_no_endpoint_only_warns(self):
        for metric, threads in (
            ("cpu.latency_p95_ms", 20),
            ("cpu.events_per_second", 1),
        ):
            factor = 20 if "latency" in metric else 0.05
            case = Case()
            faults.scaled("vm2", metric, factor, threads)(case)
            told = [one.observed for one in self.assert_proven(case).warnings]
            (warning,) = [words for words in told if "no endpoint" in words]
            self.assertIn(f"{metric}, {threads} thread", warning)

    def test_verdicts(self):
        for name, level, verdict, status in (
            ("vm1: 4 queues on the host", Level.FAILURE, "REFUTED", 2),
            (
                "vm2: cpu.events_per_second with 20 threads 20 times worse",
                *(Level.FAILURE, "REFUTED", 2),
            ),
            ("vm1: its pages were not read", Level.UNKNOWN, "NOT PROVEN", 1),
            ("vm2: its file is missing", Level.UNKNOWN, "NOT PROVEN", 1),
            (
                "node0: what VMs did is noted of no step",
                *(Level.UNKNOWN, "NOT PROVEN", 1),
            ),
        ):
            judged = with_fault(name).judged()
            self.assertIs(level, judged.level)
            found = judged.verdict, judged.exit_status, judged.proven
            self.assertEqual((verdict, status, False), found)


# What a check cannot tell, and need not: {(its module, the cause): how often}.
CAUSES = {
    ("consistency", "NOTHING_TO_JUDGE"): 1,
    ("cpu_sets", "FACTS_MISSING"): 6,
    ("irq_affinity", "FACTS_MISSING"): 2,
    ("memory", "NOTHING_TO_JUDGE"): 1,
    ("nic_vectors", "FACTS_MISSING"): 1,
    ("nic_vectors", "NOTHING_TO_JUDGE"): 4,
    ("numa_nodes", "FACTS_MISSING"): 1,
    ("numa_nodes", "NOTHING_TO_JUDGE"): 1,
    ("shape", "NOTHING_TO_JUDGE"): 3,
    ("steal", "NEVER_STOLEN"): 1,
    ("vcpus", "FACTS_MISSING"): 1,
    ("vcpus", "NOTHING_TO_JUDGE"): 1,
    ("virtual_machine", "NOTHING_TO_JUDGE"): 1,
}


class EvidenceTest(testtools.TestCase):
    def test_each_check_is_in_the_table(self):
        checks = (*CHECKS, *checks_of(host_package), *checks_of(guest_package))
        self.assertEqual({c.code for c in checks}, set(promise.EVIDENCE))
        # What never is needed says why.
        self.assertEqual([], [c for c, e in promise.EVIDENCE.items() if not e.why])

    def test_causes_are_those_that_leave_nothing_to_prove(self):
        root = pathlib.Path(inspect.getfile(host_package)).parents[2]
        given = Counter(
            (path.stem, cause)
            for path in root.rglob("*.py")
            for cause in re.findall(r"Cause\.([A-Z_]+)", path.read_text())
            if path.stem not in {"judge", "check"}
        )
        self.assertEqual(CAUSES, given)
