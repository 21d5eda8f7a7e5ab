# SPDX-License-Identifier: Apache-2.0
"""What explain and plans say of what nobody but Nova can judge."""

import json
from dataclasses import replace

from nova_perfvm.facts.snapshot import Aggregate, Flavor, Image, Inventory
from tests.unit.facts.snapshot.clouds import GENERAL, HP, Cloud
from tests.unit.osc.base import CommandCase

LABELLED = "schema_version: '1.0'\nmanaged_hosts: labelled\n"
ENABLED = "[filter_scheduler]\nenabled_filters = ComputeFilter, PerfVMFilter, {}\n"
PINNED = {"hw:cpu_policy": "dedicated"}
# What Nova refuses on a host of 2 x 20 CPUs and 500 GiB, by what is wrong with it.
REFUSED = {
    "more memory than a node has": ("nova.numa_topology", 4, 307200, PINNED),
    "a 21st CPU for the emulator's threads": (
        "nova.numa_topology",
        20,
        4096,
        {**PINNED, "hw:emulator_threads_policy": "isolate"},
    ),
    "pages that no node has": (
        "nova.numa_topology",
        20,
        65536,
        {**PINNED, "hw:mem_page_size": "1GB"},
    ),
    "large pages": ("nova.numa_topology", 4, 4096, {"hw:mem_page_size": "large"}),
    "more NUMA nodes than there are": (
        "nova.numa_topology",
        4,
        4096,
        {"hw:numa_nodes": "4"},
    ),
    "memory of a node that shares CPUs": (
        "nova.numa_topology",
        2,
        307200,
        {"hw:numa_nodes": "1"},
    ),
    "another hypervisor": (
        "nova.compute_capabilities",
        4,
        4096,
        {**PINNED, "capabilities:hypervisor_type": "s== VMware"},
    ),
    "an aggregate that has another value": (
        "nova.aggregate_extra_specs",
        4,
        4096,
        {**PINNED, "aggregate_instance_extra_specs:pinned": "true"},
    ),
    "secure boot": ("placement.trait_missing", 4, 4096, {"os:secure_boot": "required"}),
    "packed ring": (
        "placement.trait_missing",
        4,
        4096,
        {"hw:virtio_packed_ring": "true"},
    ),
}


class UnjudgedCase(CommandCase):
    def setUp(self):
        super().setUp()
        self.host("shared")
        self.policy = ("--policy", self.write("labelled.yaml", LABELLED))

    def host(self, mode):
        """Have a cloud of one host with CPUs of one kind."""
        self.cloud = Cloud()
        self.cloud.add_host("c1", mode)
        self.cloud.change_inventories("c1", DISK_GB=Inventory(9000, 9000))

    def explain(self, flavor, *arguments, filters="NUMATopologyFilter", **options):
        """Return the exit status, with a nova.conf that enables filters."""
        self.save(self.cloud)
        lines = "".join(f"[scheduler]\n{k} = {v}\n" for k, v in options.items())
        conf = self.file(ENABLED.format(filters) + lines)
        told = ("--snapshot", self.path, "--nova-conf", conf, *arguments)
        return self.run_command("explain", "--flavor", flavor, *told)

    def plan(self, flavor, *arguments):
        return self.run_command(
            "plan", "free", "--flavor", flavor, "--snapshot", self.path, *arguments
        )


class RefusedTest(UnjudgedCase):
    def host(self, mode):
        super().host(mode)
        host, told = self.cloud.hosts["c1"], {"hypervisor_type": "QEMU"}
        self.cloud.hosts["c1"] = replace(host, capabilities=told)
        metadata = {"pinned": "false"}
        pool = Aggregate(9, "u9", "pool", metadata, frozenset({"c1"}))
        self.cloud.parts["aggregates"] = (pool,)

    def test_what_nova_refuses_on_hosts_that_no_rule_looks_at(self):
        filters = "AggregateInstanceExtraSpecsFilter, ComputeCapabilitiesFilter"
        for classes in ({}, {"perfvm:class": "general"}):
            for code, vcpus, memory_mb, asked in REFUSED.values():
                pinned = "hw:cpu_policy" in asked
                if classes and pinned:
                    # Not of its class, which is refused everywhere.
                    continue
                self.host("dedicated" if pinned else "shared")
                specs = {**asked, **classes}
                flavor = Flavor("f", "f", vcpus, memory_mb, 0, specs)
                self.cloud.flavors["f"] = flavor
                status = self.explain(
                    "f",
                    "--boot-from-volume",
                    *("-f", "json", *self.policy),
                    filters=f"{filters}, NUMATopologyFilter",
                )
                self.assertEqual(1, status, self.stderr)
                (row,) = json.loads(self.stdout)
                self.assertEqual(code, row["Reason"])
                # Plans say the same of it.
                self.assertIn("no plan of 3 migrations or fewer", self.stderr)

    def test_what_it_takes(self):
        self.host("dedicated")
        self.cloud.flavors["f"] = Flavor("f", "f", 4, 4096, 0, PINNED)
        status = self.explain("f", "--boot-from-volume", *self.policy)
        self.assertEqual(0, status, self.stderr)
        self.assertIn("1 of 1 host would take it\n", self.stderr)


class UnjudgedTest(UnjudgedCase):
    def test_a_filter_of_somebody_else(self):
        filters = "FailureDomainFilter, NUMATopologyFilter"
        self.assertEqual(3, self.explain(GENERAL, filters=filters), self.stderr)
        said = "would take it, as far as seen: FailureDomainFilter not judged\n"
        self.assertIn(f"1 of 1 host {said}", self.stderr)
        self.assertIn("accepted", self.stdout)
        # What is refused for another reason is refused.
        self.cloud.flavors["f"] = Flavor("f", "f", 100, 2048, 0, {})
        self.assertEqual(1, self.explain("f", filters=filters))
        self.assertNotIn("as far as seen", self.stderr)
        conf = self.file(ENABLED.format(filters))
        self.assertEqual(0, self.plan(GENERAL, "--nova-conf", conf))
        said = "not judged: FailureDomainFilter; nova-scheduler may refuse the VM"
        self.assertIn(said, self.stderr)

    def test_a_key_of_the_flavor(self):
        self.cloud.flavors["f"] = Flavor(
            "f", "f", 2, 2048, 0, {"accel:device_profile": "gpu"}
        )
        self.cloud.change_provider("c1", traits=frozenset({"COMPUTE_ACCELERATORS"}))
        self.assertEqual(3, self.explain("f", "--boot-from-volume"), self.stderr)
        self.assertIn("as far as seen: accel:device_profile not judged", self.stderr)

    def test_a_figure_that_no_api_shows(self):
        status = self.explain(GENERAL, filters="IoOpsFilter")
        self.assertEqual(3, status, self.stderr)
        self.assertIn("IoOpsFilter (io_workload of the host) not judged", self.stderr)
        # Where it is told of each host that takes the VM, nothing is left to judge.
        host, told = self.cloud.hosts["c1"], {"stats": '{"io_workload": "2"}'}
        self.cloud.hosts["c1"] = replace(host, capabilities=told)
        self.cloud.add_host("full", "shared", memory_gb=1)
        status = self.explain(GENERAL, filters="IoOpsFilter")
        self.assertEqual(0, status, self.stderr)
        self.assertIn("1 of 2 hosts would take it\n", self.stderr)

    def test_an_image_of_an_architecture(self):
        self.cloud.parts["images"] = (
            Image("i", "i", {"hw_architecture": "x86_64", "os_distro": "debian"}),
        )
        asked = (GENERAL, "--image", "i")
        filters = "ImagePropertiesFilter"
        self.assertEqual(3, self.explain(*asked, filters=filters), self.stderr)
        said = "ImagePropertiesFilter (hw_architecture) not judged"
        self.assertIn(said, self.stderr)
        self.cloud.change_provider("c1", traits=frozenset({"HW_ARCH_X86_64"}))
        self.assertEqual(0, self.explain(*asked, filters=filters), self.stderr)

    def test_options_of_prefilters(self):
        properties = {"hw_disk_bus": "scsi"}
        self.cloud.parts["images"] = (Image("i", "i", properties, disk_format="qcow2"),)
        asked = (GENERAL, "--image", "i")
        for option, trait in (
            ("image_metadata_prefilter", "COMPUTE_STORAGE_BUS_SCSI"),
            ("query_placement_for_image_type_support", "COMPUTE_IMAGE_TYPE_QCOW2"),
        ):
            self.cloud.change_provider("c1", traits=frozenset())
            self.assertEqual(0, self.explain(*asked), self.stderr)
            self.assertEqual(1, self.explain(*asked, **{option: "True"}))
            self.assertIn(f"trait {trait} is missing", self.stdout)
            self.cloud.change_provider("c1", traits=frozenset({trait}))
            self.assertEqual(0, self.explain(*asked, **{option: "True"}))

    def test_prefilters_that_lack_a_fact(self):
        self.cloud.parts["images"] = (Image("i", "i", {}),)
        asked = (GENERAL, "--image", "i")
        for option, name in (
            ("query_placement_for_image_type_support", "require_image_type_support"),
            ("query_placement_for_routed_network_aggregates", "routed_networks_filter"),
        ):
            found = self.explain(*asked, **{option: "True"})
            self.assertEqual(3, found, self.stderr)
            self.assertIn(f"as far as seen: {name} not judged", self.stderr)

    def test_aggregates_of_projects_in_placement(self):
        option = {"limit_tenants_to_placement_aggregate": "True"}
        asked = (GENERAL, "--project", "p1")
        self.assertEqual(0, self.explain(*asked, **option), self.stderr)
        metadata = {"filter_tenant_id_1": "p1"}
        pool = Aggregate(9, "u9", "pool", metadata, frozenset())
        self.cloud.parts["aggregates"] = (pool,)
        self.assertEqual(1, self.explain(*asked, **option), self.stderr)
        self.assertIn("the host is in no aggregate of project p1", self.stdout)
        self.assertEqual(0, self.explain(GENERAL, "--project", "p2", **option))
        self.cloud.change_provider("c1", aggregates=frozenset({"u9"}))
        self.assertEqual(0, self.explain(*asked, **option), self.stderr)


class NewerThanNovaTest(UnjudgedCase):
    def test_a_prefilter_that_older_releases_lack(self):
        specs = {"hw:tpm_version": "2.0"}
        self.cloud.flavors["f"] = Flavor("f", "f", 2, 2048, 0, specs)
        vtpm = {"COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_TIS"}
        user = "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER"
        for traits, status, said in (
            (set(), 1, "trait COMPUTE_SECURITY_TPM_2_0 is missing"),
            (vtpm, 3, "as far as seen: tpm_secret_security_filter not judged"),
            (vtpm | {user}, 0, "1 of 1 host would take it\n"),
            (vtpm | {user.replace("USER", "HOST")}, 1, f"trait {user} is missing"),
        ):
            self.cloud.change_provider("c1", traits=frozenset(traits))
            found = self.explain("f", "--boot-from-volume")
            self.assertEqual(status, found, self.stderr)
            self.assertIn(said, self.stdout + self.stderr)

    def test_the_trait_that_every_new_compute_reports(self):
        for versions, status in (((73, 73), 1), ((72, 73), 0), ((None, 73), 0)):
            cloud = self.cloud = Cloud()
            for name, version in zip(("c1", "c2"), versions, strict=True):
                cloud.add_host(name, "shared")
                cloud.change_inventories(name, DISK_GB=Inventory(9000, 9000))
                host = cloud.hosts[name]
                cloud.hosts[name] = replace(host, service_version=version)
            cloud.change_provider("c2", traits=frozenset({"OWNER_NOVA"}))
            found = self.explain(GENERAL, "--host", "c1")
            self.assertEqual(status, found, self.stderr)
            self.assertEqual(bool(status), "OWNER_NOVA is missing" in self.stdout)


class ContradictionTest(UnjudgedCase):
    def test_plans_keep_to_rules_that_nova_scheduler_does_not(self):
        """What explain finds is said, where plans find no room for it."""
        self.host("dedicated")
        # CPUs of both kinds: no host for VMs that want it for themselves.
        self.cloud.change_inventories("c1", VCPU=Inventory(40, 40))
        self.save(self.cloud)
        conf = ("--nova-conf", self.file("[perfvm]\nmode = observe\n"))
        told = ("--flavor", HP, "--snapshot", self.path, *conf)
        self.assertEqual(0, self.run_command("explain", *told), self.stderr)
        self.assertEqual(2, self.plan(HP, *conf), self.stderr)
        said = "under the rules, which nova-scheduler does not enforce: see explain"
        self.assertIn(said, self.stderr)
