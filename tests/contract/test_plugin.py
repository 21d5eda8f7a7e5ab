# SPDX-License-Identifier: Apache-2.0

import collections
import json
import os
import re
import shlex
import subprocess

import fixtures
import testtools

from nova_perfvm.policy import loader
from tests import documented
from tests.contract import facts
from tests.contract.node import DEVSTACK_DIR, ROOT, Node


def localrc(name):
    """Return what a sample local.conf says about the plugin and the services."""
    lines = (ROOT / "devstack" / name).read_text().splitlines()
    kept = [line for line in lines if line.startswith(("PERFVM_", "ENABLED_SERVICES"))]
    return "\n".join([*kept, "PERFVM_TOPOLOGY=1x2", ""])


ELASTIC = localrc("local.conf.sample")

# What other plugins and DevStack may have put there before.
OTHER = """\
iniset_multiline $NOVA_CONF filter_scheduler available_filters \
    nova.scheduler.filters.all_filters blazarnova.BlazarFilter
iniset $NOVA_CONF filter_scheduler weight_classes \
    "nova.scheduler.weights.all_weighers, theirs.Weigher"
iniset $NOVA_CONF compute cpu_shared_set "7"
iniset $NOVA_CONF compute provider_config_location $NOVA_CONF_DIR/providers
iniset $NOVA_CONF workarounds disable_fallback_pcpu_query False
iniset $PLACEMENT_CONF placement allocation_conflict_retry_count 7
mkdir -p $NOVA_CONF_DIR/providers
echo "theirs" > $NOVA_CONF_DIR/providers/theirs.yaml
"""

DEDICATED = """\
PERFVM_HOST_MODE=dedicated
PERFVM_TOPOLOGY=2x20
PERFVM_RESERVE_MEMORY_GB=2
"""

SLOTS = ("CUSTOM_PERFVM_SLOT", "total: 2", "CUSTOM_PERFVM_HIGH_PERFORMANCE")


class NodeCase(testtools.TestCase):
    def node(self, **settings):
        return Node(self.useFixture(fixtures.TempDir()).path, **settings)

    def run_well(self, node, mode="stack"):
        """Run a script, and assert what holds of every run."""
        status = node.run(mode)
        self.assertEqual(0, status, node.output[-2000:])
        facts.nothing_leaks(node)
        facts.nothing_races(node)
        if mode == "stack":
            facts.every_phase_ends_well(node)
        return node


class AllInOneTest(NodeCase):
    """stack.sh with nothing but enable_plugin, again, and the way back."""

    def test_from_stack_to_clean(self):
        node = self.run_well(self.node())
        self._assert_stacked(node)
        first = node.nova
        self.run_well(node)
        self._assert_stacked(node)
        self.assertEqual(first, node.nova)

        for _ in range(2):
            self.run_well(node, "unstack")
            facts.equal(
                [node.lines("after-nothing/nova/nova.conf")[1:3], []],
                [node.lines("etc/nova/nova.conf")[1:3], node.calls("uninstall")],
            )
            self._assert_nothing_of_ours(node)
        for _ in range(2):
            self.run_well(node, "clean")
            self.assertEqual(
                [
                    f"{python}/bin/pip uninstall -y nova-perfvm"
                    for python in ("data/venv", "tempest/.tox/tempest")
                ],
                node.calls("uninstall"),
            )
            self.assertFalse(node.exists("dest/data/perfvm"))
        self.run_well(node)
        self._assert_stacked(node)

    def _assert_stacked(self, node):
        facts.the_filter_is_listed_once_ahead_of_numa(node)
        facts.nova_and_tempest_agree_on_filters(node)
        facts.available_filters_keep_others(node)
        facts.nothing_is_lost_to_neutron(node)
        self.assertEqual(
            [f"{facts.NOVAS_WEIGHERS},{facts.OUR_WEIGHER}"], node.nova[facts.WEIGHERS]
        )
        policy = str(node.directory / "etc/nova/perfvm.yaml")
        self.assertEqual([policy], node.nova["perfvm", "policy_file"])
        # The built-in one, with its comments.
        built_in = (ROOT / "etc/nova_perfvm/perfvm.yaml").read_text()
        self.assertEqual(built_in, node.read("etc/nova/perfvm.yaml"))
        self.assertEqual(
            ["1"],
            node.options("etc/placement/placement.conf")[
                "placement", "allocation_conflict_retry_count"
            ],
        )
        self.assertEqual(
            ["True"], node.nova["workarounds", "disable_fallback_pcpu_query"]
        )
        # A shared host is the default: DevStack's own VMs and Tempest's run on it.
        self.assertIn(("compute", "cpu_shared_set"), node.nova_cpu)
        self.assertNotIn(("compute", "cpu_dedicated_set"), node.nova_cpu)
        self.assertNotIn(("libvirt", "virt_type"), node.nova)
        self.assertEqual(1, len(node.calls("data/venv/bin/pip install", f"-e {ROOT}")))
        self._assert_cloud(node)
        self.assertEqual(
            {
                ("service_available", "perfvm"): ["True"],
                ("perfvm", "high_performance_flavor"): ["hp.20c.64g"],
                ("perfvm", "general_flavor"): ["g.1c.2g"],
                ("perfvm", "general_flavor_alt"): ["g.2c.4g"],
                ("perfvm", "vcpus"): ["20"],
                ("perfvm", "max_per_host"): ["2"],
                ("perfvm", "exclusive"): ["host"],
                ("perfvm", "placement"): ["slots"],
            },
            {
                name: value
                for name, value in node.tempest.items()
                if name[0] in {"service_available", "perfvm"}
            },
        )
        # m1.nano and m1.micro are good enough.
        self.assertEqual(["42"], node.tempest["compute", "flavor_ref"])
        self.assertNotIn("WARNING", node.output)

    def _assert_cloud(self, node):
        # Placement answers 400 to names that it does not know: they come first.
        calls = node.lines("calls")
        first = calls.index(node.calls("flavor create")[0])
        for words in (
            "trait create CUSTOM_PERFVM_HIGH_PERFORMANCE",
            "resource class set CUSTOM_PERFVM_SLOT",
        ):
            (call,) = node.calls(words)
            self.assertLess(calls.index(call), first)
        self.assertEqual(7, len(node.calls("flavor create")))
        (image,) = node.calls("image set")
        self.assertIn("hw_vif_multiqueue_enabled=true", image)
        self.assertTrue(image.endswith(" cirros-0.6.3-x86_64-disk"))
        self.assertEqual([], node.calls("enroll"))

    def _assert_nothing_of_ours(self, node):
        facts.nothing_of_ours_is_configured(node)
        self.assertNotIn("perfvm", node.read("tempest.conf"))
        self.assertEqual(["42"], node.tempest["compute", "flavor_ref"])
        self.assertNotIn(facts.AVAILABLE, node.nova)
        self.assertNotIn(facts.WEIGHERS, node.nova)
        self.assertFalse(node.exists("etc/nova/perfvm.yaml"))


class ElasticTest(NodeCase):
    """A machine of 2 CPUs for both classes, beside what others configured."""

    def test_small_machine(self):
        node = self.node(localrc=ELASTIC, other=OTHER, hosts="host1.example.org")
        self.run_well(node)
        facts.available_filters_keep_others(node, ["blazarnova.BlazarFilter"])
        self.assertEqual(
            [f"{facts.NOVAS_WEIGHERS},theirs.Weigher,{facts.OUR_WEIGHER}"],
            node.nova[facts.WEIGHERS],
        )
        policy = loader.load(node.directory / "etc/nova/perfvm.yaml")
        fast = policy.get_class("high-performance")
        self.assertEqual(
            ("units", 1, 2, "image"),
            (policy.placement, fast.vcpus, fast.max_per_host, fast.disk.source),
        )
        facts.nova_compute_gets(
            node,
            {
                ("workarounds", "disable_fallback_pcpu_query"): ["False"],
                ("scheduler", "enable_isolated_aggregate_filtering"): ["True"],
                ("compute", "cpu_dedicated_set"): None,
            },
        )
        created = [call.split()[-1] for call in node.calls("flavor create")]
        self.assertEqual(["hp.1c.1g", "g.1c.1g", "g.1c.2g"], created)
        # m1.nano has no units: no elastic host takes it.
        self.assertEqual(["id-of-g.1c.1g"], node.tempest["compute", "flavor_ref"])
        self.assertEqual(["id-of-g.1c.2g"], node.tempest["compute", "flavor_ref_alt"])
        # By its name in Placement, once its provider is there, after discovery.
        (call,) = node.calls("perfvm host enroll")
        self.assertEqual(
            "openstack --os-cloud devstack-admin perfvm host enroll host1.example.org "
            f"--policy {node.directory}/etc/nova/perfvm.yaml --yes --slots 2",
            call,
        )
        self.assertEqual(2, len(node.calls("provider list --name host1.example.org")))

        self.run_well(node, "unstack")
        self._assert_as_before(node)

    def _assert_as_before(self, node):
        before = node.options("after-nothing/nova/nova.conf")
        before["neutron", "region_name"] = ["RegionOne"]
        # Two of a list's items had a space between them.
        before[facts.WEIGHERS] = [before[facts.WEIGHERS][0].replace(" ", "")]
        self.assertEqual(
            {k: v for k, v in before.items() if k != facts.ENABLED},
            {k: v for k, v in node.nova.items() if k != facts.ENABLED},
        )
        self.assertEqual(
            node.options("after-nothing/placement/placement.conf"),
            node.options("etc/placement/placement.conf"),
        )
        self.assertEqual("theirs\n", node.read("etc/nova/providers/theirs.yaml"))

    def enrolled(self, node):
        """Return the slots that each host was enrolled with, None for none said."""
        found = {}
        for call in node.calls("perfvm host enroll"):
            host, *arguments = call.split(" enroll ")[1].split()
            found[host] = arguments[-1] if "--slots" in arguments else None
        return found

    def test_slots_that_hosts_are_enrolled_with(self):
        """No API says how this host's CPUs are divided; of others nobody knows."""
        larger = "PERFVM_POLICY_FILE=$CONTRACT_SCRATCH/larger.yaml\n"
        uneven = [{"cpu": n, "core": n, "node": n // 24} for n in range(4 * 24 - 1)]
        for settings, here, there in (
            # The fake driver shows no CPUs.
            ("VIRT_DRIVER=fake\nNUMBER_FAKE_NOVA_COMPUTE=2\n", "0", "0"),
            ("PERFVM_TOPOLOGY=1x4x2\n", "2", None),
            ("PERFVM_TOPOLOGY=1x4\nPERFVM_RESERVE=1\n", "2", None),
            ("PERFVM_HOST_MODE=shared\n", "0", None),
            ("PERFVM_HOST_MODE=none\n", None, None),
            ("PERFVM_HOST_MODE=shared\nPERFVM_SLOTS=1\n", "1", "1"),
            # It has room for more than units are made for.
            (f"{larger}PERFVM_TOPOLOGY=1x4\n", "2", None),
            # The line that tells its room is wrapped.
            ("PERFVM_TOPOLOGY=$CONTRACT_SCRATCH/uneven.json\n", "2", None),
        ):
            node = self.node(localrc=ELASTIC + settings, hosts="host1.here host10")
            text = (ROOT / "devstack/elastic.yaml").read_text()
            text = text.replace("1x2, 1x4, 1x8", "1x2").replace("host: 2", "host: 4")
            node.write("larger.yaml", text)
            node.write("uneven.json", json.dumps({"cpus": uneven}))
            self.run_well(node)
            expected = {"host1.here": here, "host10": there}
            self.assertEqual(expected, self.enrolled(node), settings)

    def test_cpus_left_out(self):
        settings = "PERFVM_TOPOLOGY=1x4\nPERFVM_RESERVE=1\n"
        node = self.run_well(self.node(localrc=ELASTIC + settings))
        facts.nova_compute_gets(node, {("DEFAULT", "vcpu_pin_set"): ["1-3"]})

    def test_host_that_cannot_be_enrolled(self):
        """Of another one stack.sh here may know too little."""
        node = self.node(localrc=ELASTIC, hosts="host1 host2")
        node.write("refused", "host enroll host2\n")
        self.run_well(node)
        self.assertIn("host2 is not enrolled: enroll-hosts.sh does it", node.output)
        node.write("refused", "host enroll host1\n")
        self.assertNotEqual(0, node.run("stack"))
        self.assertIn("host1 is not enrolled", node.output)

    def test_unknown_hosts(self):
        """A cloud that does not answer is not one without hosts."""
        node = self.node(localrc=ELASTIC, hosts="host1")
        node.write("refused", "hypervisor list\n")
        self.assertNotEqual(0, node.run("stack"))
        self.assertIn("no list of compute hosts", node.output)


class CellsTest(NodeCase):
    """Hosts whose NUMA nodes Placement counts, beside what others configured."""

    def test_from_stack_to_unstack(self):
        other = (
            "iniset $NOVA_CONF neutron physnets sriov\n"
            "iniset $NOVA_CONF neutron_physnet_sriov numa_nodes 1\n"
            "iniset $NOVA_CONF filter_scheduler enabled_filters "
            "$NOVA_FILTERS,NUMATopologyFilter\n"
        )
        settings = (
            f"{DEDICATED}PERFVM_POLICY_FILE=$CONTRACT_PROJECT/devstack/cells.yaml\n"
        )
        node = self.node(localrc=settings, other=other, hosts="host1 shared1")
        self.run_well(node)
        facts.nova_compute_gets(
            node,
            {
                ("compute", "cpu_dedicated_set"): ["0-39"],
                ("neutron", "physnets"): ["sriov,perfvm_cell_0,perfvm_cell_1"],
                ("neutron_physnet_sriov", "numa_nodes"): ["1"],
                ("neutron_physnet_perfvm_cell_0", "numa_nodes"): ["0"],
                ("neutron_physnet_perfvm_cell_1", "numa_nodes"): ["1"],
            },
        )
        # Nova's own would let nova-compute choose.
        facts.the_filter_is_listed_once_ahead_of_numa(node)
        (filters,) = node.nova[facts.ENABLED]
        self.assertNotIn(",NUMATopologyFilter", filters)
        # No API tells NUMA nodes; shared hosts have none that count.
        (call,) = node.calls("perfvm host enroll")
        self.assertTrue(call.endswith("perfvm.yaml --yes --from-nova-db"), call)
        self.assertIn(" enroll host1 ", call)
        self.assertEqual(["cells"], node.tempest["perfvm", "placement"])

        self.run_well(node, "unstack")
        self.assertEqual(["sriov"], node.nova["neutron", "physnets"])
        self.assertNotIn("perfvm", node.read("etc/nova/nova.conf"))


class DedicatedTest(NodeCase):
    def test_compute_only_node(self):
        settings = f"{DEDICATED}ENABLED_SERVICES=n-cpu,placement-client,q-agt\n"
        node = self.run_well(self.node(localrc=settings))
        directory = node.directory / "etc/nova/provider_config"
        expected = {
            ("compute", "cpu_dedicated_set"): ["0-39"],
            ("compute", "cpu_shared_set"): None,
            ("compute", "provider_config_location"): [str(directory)],
            ("DEFAULT", "reserved_host_memory_mb"): ["4096"],
            ("perfvm", "policy_file"): None,
            facts.AVAILABLE: None,
        }
        facts.nova_compute_gets(node, expected)
        provider = node.read("etc/nova/provider_config/nova-perfvm.yaml")
        for words in SLOTS:
            self.assertIn(words, provider)
        self.assertEqual([], node.calls("openstack"))
        self.assertFalse(node.exists("tempest.conf"))
        self.assertEqual(
            {("placement_database", "connection")},
            set(node.options("etc/placement/placement.conf")),
        )

        # As another host, without unstack: nothing of the old one stays.
        node.write("localrc", settings.replace("dedicated", "shared"))
        self.run_well(node)
        facts.nova_compute_gets(
            node,
            {
                ("compute", "cpu_dedicated_set"): None,
                ("compute", "cpu_shared_set"): ["0-39"],
            },
        )
        self.assertFalse(node.exists("etc/nova/provider_config/nova-perfvm.yaml"))

    def test_host_mode_none(self):
        """Cpu sets are somebody else's."""
        node = self.node(localrc="PERFVM_HOST_MODE=none\n", other=OTHER)
        self.run_well(node)
        facts.nova_compute_gets(
            node,
            {
                ("compute", "cpu_shared_set"): ["7"],
                ("DEFAULT", "reserved_host_memory_mb"): None,
            },
        )
        facts.available_filters_keep_others(node, ["blazarnova.BlazarFilter"])


class TwoNodeTest(NodeCase):
    """The sample local.conf of each of two machines."""

    def test_controller(self):
        node = self.node(localrc=localrc("local.conf.controller.sample"))
        self.run_well(node)
        facts.nova_compute_gets(
            node,
            {
                ("compute", "cpu_shared_set"): ["0-1"],
                ("compute", "cpu_dedicated_set"): None,
            },
        )
        self.assertEqual(["slots"], node.tempest["perfvm", "placement"])
        self.assertFalse(node.exists("etc/nova/provider_config"))

    def test_compute(self):
        node = self.node(localrc=localrc("local.conf.compute.sample"))
        self.run_well(node)
        facts.nova_compute_gets(
            node,
            {
                ("compute", "cpu_dedicated_set"): ["0-1"],
                ("compute", "cpu_shared_set"): None,
            },
        )
        self.assertIn(
            "total: 2", node.read("etc/nova/provider_config/nova-perfvm.yaml")
        )
        self.run_well(node, "unstack")
        facts.nothing_of_ours_is_configured(node)
        self.run_well(node, "clean")
        (call,) = node.calls("uninstall")
        self.assertEqual("data/venv/bin/pip uninstall -y nova-perfvm", call)

    def test_their_policy_is_the_same(self):
        found = [
            {
                line
                for line in localrc(f"local.conf.{name}.sample").splitlines()
                if line.startswith("PERFVM_") and "HOST_MODE" not in line
            }
            for name in ("controller", "compute")
        ]
        self.assertEqual(found[0], found[1])


class SamplesTest(testtools.TestCase):
    def options(self, name):
        """Return {(meta-section, section): lines} of a sample."""
        found, where = collections.defaultdict(list), ("", "")
        for line in (ROOT / "devstack" / name).read_text().splitlines():
            if line.startswith("[["):
                where = (line.strip("[]"), "")
            elif line.startswith("["):
                where = (where[0], line.strip("[]"))
            elif line and not line.startswith("#"):
                found[where].append(line)
        return found

    def test_vms_of_several_vcpus_boot(self):
        for name in ("local.conf.sample", "local.conf.controller.sample"):
            found = self.options(name)
            self.assertIn("LIBVIRT_TYPE=qemu", found["local|localrc", ""])
            nova = found["post-config|$NOVA_CONF", "quota"]
            self.assertEqual(["cores = -1"], nova)
            neutron = found["post-config|/$Q_PLUGIN_CONF_FILE", "ovn"]
            self.assertEqual(["ovs_create_tap = False"], neutron)

    def test_the_compute_host_leaves_that_to_the_controller(self):
        found = self.options("local.conf.compute.sample")
        self.assertEqual({("local|localrc", "")}, set(found))


class EnrollLaterTest(NodeCase):
    """The command for hosts that join after stack.sh."""

    def enroll(self, *arguments, refused=None):
        node = self.node(hosts="host1 host2")
        if refused:
            node.write("refused", f"{refused}\n")
        here = ROOT / "tests/contract"
        functions = f"{DEVSTACK_DIR or here / 'doubles'}/functions"
        node.write("top/tools/discover_hosts.sh", f"touch {node.directory}/discovered")
        (node.directory / "top/tools/discover_hosts.sh").chmod(0o755)
        # DevStack keeps commands in bin of its venv.
        (node.directory / "venv").mkdir()
        (node.directory / "venv/bin").symlink_to(here / "commands")
        node.write(
            "top/openrc",
            f"DEVSTACK_VENV={node.directory}/venv GLOBAL_VENV=True os_PACKAGE=deb\n"
            f"source {functions}\n",
        )
        result = subprocess.run(
            ["bash", str(ROOT / "devstack/enroll-hosts.sh"), *arguments],
            check=False,
            capture_output=True,
            encoding="utf-8",
            env=os.environ
            | {
                "CONTRACT_HOSTS": node.hosts,
                "CONTRACT_SCRATCH": str(node.directory),
                "TOP_DIR": str(node.directory / "top"),
            },
        )
        calls = node.calls("enroll") if node.exists("calls") else []
        return result, [call.split(" enroll ")[1] for call in calls]

    def test_it_enrolls(self):
        page = [command.text for command in documented.of(self)]
        of_all, of_one = (shlex.split(text, comments=True)[1:] for text in page)
        end = "--policy /etc/nova/perfvm.yaml --yes"
        both = [f"{host} {end}" for host in ("host1", "host2")]
        for words, refused, status, expected, said in (
            (of_all, None, 0, both, ""),
            ([*of_one[:-1], "host2"], None, 0, [f"host2 {end} --slots 0"], ""),
            ([], "hypervisor list", 1, [], "refused: "),
            (["--help"], None, 2, [], "enroll-hosts.sh [--slots N] [HOST...]"),
        ):
            result, enrolled = self.enroll(*words, refused=refused)
            self.assertEqual((status, expected), (result.returncode, enrolled), words)
            self.assertIn(said, result.stdout + result.stderr)


class RefusedTest(NodeCase):
    def test_disabled(self):
        node = self.node(localrc="disable_service perfvm\n")
        for mode in ("stack", "unstack", "clean"):
            self.assertEqual(0, node.run(mode), node.output[-2000:])
            facts.nothing_leaks(node)
            self.assertEqual([], node.lines("calls"))
            self.assertNotIn("PerfVMFilter", node.read("filters"))
            for name in ("nova.conf", "nova-cpu.conf"):
                self.assertNotIn("erf", node.read(f"etc/nova/{name}"))

    def test_disabled_later(self):
        """What an earlier stack.sh wrote goes, and nothing else."""
        node = self.run_well(self.node())
        node.write("localrc", "disable_service perfvm\n")
        self.run_well(node)
        self.assertEqual(["RegionOne"], node.nova["neutron", "region_name"])
        self.assertNotIn("erfVM", node.read("etc/nova/nova.conf"))
        self.assertFalse(node.exists("etc/nova/perfvm.yaml"))

    def test_a_policy_that_cannot_be(self):
        node = self.node()
        node.write("bad.yaml", "placement: slot\n")
        node.write("localrc", f"PERFVM_POLICY_FILE={node.directory}/bad.yaml\n")
        self.assertNotEqual(0, node.run("stack", until="post-config"))
        self.assertIn("expected one of 'slots'", node.output)
        self.assertFalse(node.exists("etc/nova/perfvm.yaml"))

    def test_local_conf_wins(self):
        text = (
            "[[post-config|$NOVA_CONF]]\n[filter_scheduler]\n"
            "enabled_filters = ComputeFilter\navailable_filters = theirs.Filter\n"
        )
        node = self.run_well(self.node(local_conf=text))
        self.assertEqual(["ComputeFilter"], node.nova[facts.ENABLED])
        for words in (
            "enabled_filters of {} lacks PerfVMFilter",
            "available_filters of {} lacks nova.scheduler",
            "available_filters of {} lacks nova_perfvm.scheduler",
        ):
            path = f"{node.directory}/etc/nova/nova.conf"
            self.assertIn(words.format(path), node.output)


class SettingsTest(NodeCase):
    def test_every_variable_is_documented(self):
        settings = (ROOT / "devstack/settings").read_text()
        known = set(re.findall(r"^(PERFVM_\w+)=\S*\1", settings, re.MULTILINE))
        known -= {"PERFVM_OWN_FILTERS"}
        text = (ROOT / "doc/source/contributor/devstack.rst").read_text()
        variables = text[text.index("Variables\n=") : text.index("What it writes")]
        listed = re.findall(r"^   \* - (.*)$", variables, re.MULTILINE)
        documented = set(re.findall(r"``(PERFVM_\w+)``", " ".join(listed)))
        self.assertEqual(sorted(known), sorted(documented))

    def test_twice_in_one_shell(self):
        node = self.run_well(self.node(), "settings")
        facts.the_filter_is_listed_once_ahead_of_numa(node)
        self.assertEqual(1, node.read("services").strip().split(",").count("perfvm"))
