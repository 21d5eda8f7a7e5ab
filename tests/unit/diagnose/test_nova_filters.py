# SPDX-License-Identifier: Apache-2.0
"""The filters that are judged without Nova, beside Nova's own on the same hosts."""

import collections
import dataclasses
import datetime as dt
import json
import logging
import random

import fixtures
import testtools
from nova import objects
from nova.conf import CONF
from nova.scheduler import filters, host_manager
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, nova_database
from nova_perfvm.diagnose.nova_filters import FILTERS, FilterCase
from nova_perfvm.diagnose.nova_filters.case import differs, not_judged
from nova_perfvm.diagnose.words import words
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import (
    Aggregate,
    ComputeHost,
    Flavor,
    Image,
    Server,
    Snapshot,
)
from tests.unit.facts.snapshot.clouds import POLICY
from tests.unit.scheduler import states

# Their verdicts are compared elsewhere, with more of a cloud around them.
ELSEWHERE = {
    "ComputeFilter",
    "NUMATopologyFilter",
    "PciPassthroughFilter",
    "PerfVMFilter",
    "PerfVMNUMATopologyFilter",
    "ServerGroupAffinityFilter",
    "ServerGroupAntiAffinityFilter",
}
# Nova has them, and they are named as not judged.
NAMED = {"JsonFilter", "MetricsFilter", "SimpleCIDRAffinityFilter"}

SPECS = {
    "capabilities:hypervisor_type": ["s== QEMU", "s== VMware", "QEMU", "<in> QEM"],
    "hypervisor_type": ["QEMU", "ironic", "s!= QEMU"],
    "capabilities:cpu_info:arch": ["x86_64", "<or> aarch64 <or> x86_64", "<or> armv7"],
    "capabilities:cpu_info:features": ["<all-in> avx2 aes", "<in> avx512", ""],
    "hw:maxphysaddr_bits": ["40", "52"],
    "capabilities:cpu_info:arch:deeper": ["x"],
    "capabilities:num_instances": ["<= 3", "== 2", "= 9", "!= 2"],
    "capabilities:stats:io_workload": [">= 1", "s== 2", "s< 2"],
    "io_workload": ["= 1"],
    "num_vm_active": ["= 1", "s== 1"],
    # No statistic of the host: the key is an aggregate's alone.
    "num_nics": ["2"],
    "boot_mode": ["uefi", "bios"],
    "capabilities:hypervisor_version": [">= 8000000", ">= 9000000"],
    "free_ram_mb": ["= 1000", "= 100000"],
    "free_disk_mb": ["= 81920", "= 81921"],
    "total_usable_disk_gb": ["= 100", "= 101"],
    "capabilities:nothing": ["x"],
    "quota:cpu_shares": ["1"],
    "ssd": ["true", "<or> yes <or> true"],
    "aggregate_instance_extra_specs:rack": ["r1", "s> r1", "<in> r"],
}
PROPERTIES = {
    "architecture": ["x86_64", "amd64", "aarch64"],
    "hw_architecture": ["i686"],
    "img_hv_type": ["kvm", "qemu", "xen", "QEMU"],
    "hw_vm_mode": ["hvm", "xen"],
    "img_hv_requested_version": [">=8.0", "<8.0"],
    "os_distro": ["ubuntu", "debian"],
    "os_type": ["linux", "windows", "Windows"],
    "hw_vif_multiqueue_enabled": ["true", "false", "1"],
    "hw_qemu_guest_agent": ["yes", "no"],
    "hw_cpu_sockets": ["02", "0"],
    "owner_id": ["x"],
    "hw_gpu": ["a100"],
    "mine": ["x"],
}
METADATA = {
    "ssd": ["true", "yes, true", "false"],
    "rack": ["r1", "r1,r2"],
    "instance_type": ["f", "a, f", "a"],
    "filter_tenant_id": ["p1", "p2,p3"],
    "filter_tenant_id_more": ["p1"],
    "max_instances_per_host": ["2", "5", "many"],
    "max_io_ops_per_host": ["2", "5"],
    "os_distro": ["ubuntu", "debian,centos"],
    "hw_vif_multiqueue_enabled": ["True"],
    "hw_qemu_guest_agent": ["True", "yes"],
    "hw_architecture": ["x86_64,amd64", "i686"],
    "hw_cpu_sockets": ["2", "4"],
    "img_owner_id": ["x", "y"],
    "os_type": ["windows"],
    "hw_gpu": ["v100"],
    "os_version": ["12"],
    "mine": ["y"],
}
HINTS = {
    "same_host": [[uuidsentinel.a], [uuidsentinel.b], [uuidsentinel.b, uuidsentinel.a]],
    "different_host": [[uuidsentinel.a], [uuidsentinel.b]],
}
OPTIONS = {
    "max_instances_per_host": ["50", "2"],
    "max_io_ops_per_host": ["8", "2"],
    "isolated_images": ["", uuidsentinel.i, f"other,{uuidsentinel.i}"],
    "isolated_hosts": ["", "hp1", "hp2, hp1"],
    "restrict_isolated_hosts_to_isolated_images": ["True", "False"],
    "image_properties_default_architecture": ["x86_64", "aarch64"],
    "aggregate_image_properties_isolation_namespace": ["os"],
    "aggregate_image_properties_isolation_separator": ["_"],
}
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KVM = [("x86_64", "kvm", "hvm"), ("x86_64", "qemu", "hvm"), ("i686", "qemu", "hvm")]


def drawn(rng, table, share=0.3):
    return {k: rng.choice(v) for k, v in table.items() if rng.random() < share}


def compute_node(rng):
    """Return a compute node as nova-compute reports it."""
    info = {"arch": "x86_64", "features": ["avx2", "aes"]}
    if rng.random() < 0.5:
        info["maxphysaddr"] = {"mode": "emulate", "bits": 46}
    return objects.ComputeNode(
        id=1,
        uuid=uuidsentinel.hp1,
        host="hp1",
        hypervisor_hostname="hp1",
        vcpus=8,
        vcpus_used=2,
        memory_mb=65536,
        memory_mb_used=4096,
        free_ram_mb=61440,
        local_gb=100,
        local_gb_used=10,
        free_disk_gb=90,
        disk_available_least=80,
        host_ip="10.0.0.1",
        hypervisor_type="QEMU",
        hypervisor_version=8002000,
        cpu_info=json.dumps(info),
        numa_topology=states.numa_topology("1x8")._to_json(),
        supported_hv_specs=[objects.HVSpec.from_list(list(kind)) for kind in KVM],
        stats={"num_instances": "2", "io_workload": "2", "failed_builds": "0"}
        | {"num_vm_active": "2", "boot_mode": "uefi"},
        metrics=None,
        pci_device_pools=None,
        cpu_allocation_ratio=1.0,
        ram_allocation_ratio=1.0,
        disk_allocation_ratio=1.0,
        updated_at=NOW,
    )


class AsNovaTest(testtools.TestCase):
    def test_every_filter_is_judged_or_named(self):
        theirs = {found.__name__ for found in filters.all_filters()}
        self.assertEqual(NAMED, theirs - FILTERS.keys())
        ours = {"PerfVMFilter", "PerfVMNUMATopologyFilter"}
        self.assertEqual(ours, FILTERS.keys() - theirs)

    def test_verdicts(self):
        """On the same compute nodes, aggregates, flavors, images and options."""
        rng = random.Random(40)
        settings = self.useFixture(config_fixture.Config(CONF))
        # Keys that are no properties, and lines for each host.
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL))
        defaults = {name: CONF.filter_scheduler[name] for name in OPTIONS}
        of_nova = {
            found.__name__: found
            for found in filters.all_filters()
            if found.__name__ in FILTERS.keys() - ELSEWHERE
        }
        seen = collections.Counter()
        unjudged = collections.Counter()
        for number in range(400):
            told = self.configure(rng, settings, defaults)
            state, view, spec, request = self.pair(rng)
            for name, made in of_nova.items():
                case = number, name, told, request
                reasons = list(FILTERS[name](FilterCase(POLICY, request, view, told)))
                try:
                    passes = made().host_passes(state, spec)
                except ValueError:
                    # Such as a number that is none: nova-scheduler fails.
                    passes = False
                judged = [r for r in reasons if r.code != const.NOT_JUDGED]
                unjudged[name] += len(judged) < len(reasons)
                if reasons and not judged:
                    continue
                self.assertEqual(passes, not judged, (case, judged, view.aggregates))
                seen[name, passes] += 1
                for reason in judged:
                    self.assertIn(reason.code, const.OUTER_CODES)
                    self.assertTrue(words(reason))
        for name in of_nova.keys() - {"AllHostsFilter"}:
            for passes in (True, False):
                self.assertGreater(seen[name, passes], 5, (name, passes, unjudged))
        # A figure of which Nova's database has none.
        self.assertEqual(set(), (+unjudged).keys() - {"ImagePropertiesFilter"})

    def configure(self, rng, settings, defaults):
        """Set options of Nova, and return them as a file has them."""
        options = drawn(rng, OPTIONS, 0.2)
        for name, default in defaults.items():
            value = options.get(name, default)
            if isinstance(default, list) and isinstance(value, str):
                value = [s.strip() for s in value.split(",") if s.strip()]
            settings.config(group="filter_scheduler", **{name: value})
        return {("filter_scheduler", k): v for k, v in options.items()}

    def pair(self, rng):
        """Return a host and a request as Nova has them, and as a snapshot does."""
        node = compute_node(rng)
        state = host_manager.HostState("hp1", "hp1", uuidsentinel.cell)
        metadata = [drawn(rng, METADATA) for _ in range(rng.choice([0, 1, 1, 2]))]
        servers = rng.choice([(), ("a",), ("a", "c")])
        servers = [getattr(uuidsentinel, name) for name in servers]
        state.update(
            compute=node,
            service={"host": "hp1"},
            aggregates=[
                objects.Aggregate(id=index, metadata=found, hosts=["hp1"])
                for index, found in enumerate(metadata)
            ],
            inst_dict={name: objects.Instance(uuid=name) for name in servers},
        )
        taken = Snapshot(
            "2026-01-01T00:00:00+00:00",
            hosts=(ComputeHost("hp1", "hp1", node.uuid, "s", vcpus=8),),
            aggregates=tuple(
                Aggregate(i, f"u{i}", f"a{i}", found, frozenset({"hp1"}))
                for i, found in enumerate(metadata)
            ),
            servers=tuple(Server(s, s, "hp1", "ACTIVE", 1, {}) for s in servers),
        )
        (view,) = views_of(nova_database.with_cells(taken, [node]))
        specs, properties = drawn(rng, SPECS, 0.12), drawn(rng, PROPERTIES, 0.2)
        hints, is_bfv = drawn(rng, HINTS, 0.2), rng.random() < 0.3
        spec = states.request_spec("f", 1, 512, specs, {}, is_bfv, hints)
        spec.image.properties = objects.ImageMetaProps.from_dict(properties)
        # Also of an image that is written to a volume
        # (nova.block_device.get_bdm_image_metadata).
        spec.image.id = uuidsentinel.i
        spec.project_id = rng.choice(["p1", "p4"])
        image = Image(uuidsentinel.i, "i", properties)
        request = request_for(
            Flavor("f", "f", 1, 512, 0, specs), image, volume_backed=is_bfv
        )
        keys = dataclasses.replace(request.keys, disk_format="", hints=hints)
        request = dataclasses.replace(request, keys=keys, project=spec.project_id)
        return state, view, spec, request


class OfTheAPITest(testtools.TestCase):
    def test_what_the_api_shows_of_a_hypervisor(self):
        shown = {
            "id": "p",
            "hypervisor_hostname": "hp1",
            "service": {"host": "hp1"},
            "state": "up",
            "status": "enabled",
            "hypervisor_type": "QEMU",
            "hypervisor_version": 8002000,
            "cpu_info": {"arch": "x86_64", "features": ["avx2", "aes"]},
        }
        host = answers.compute_host(shown, None, (), ())
        (view,) = views_of(Snapshot("2026-01-01T00:00:00+00:00", hosts=(host,)))
        for key, wanted, found in (
            ("capabilities:cpu_info:features", "<in> avx2", []),
            ("capabilities:cpu_info:features", "<in> avx512", ["nova.compute_"]),
            ("capabilities:hypervisor_version", ">= 8000000", []),
            ("hypervisor_type", "s== ironic", ["nova.compute_"]),
            # No API shows what nova-compute counts.
            ("capabilities:io_workload", "<= 3", [const.NOT_JUDGED]),
            ("num_vm_active", "1", [const.NOT_JUDGED]),
            ("boot_mode", "uefi", []),
        ):
            flavor = Flavor("f", "f", 1, 512, 0, {key: wanted})
            request = request_for(flavor, volume_backed=True)
            case = FilterCase(POLICY, request, view)
            reasons = FILTERS["ComputeCapabilitiesFilter"](case)
            codes = [r.code.replace("capabilities", "") for r in reasons]
            self.assertEqual(found, codes)


class TableTest(testtools.TestCase):
    def test_what_is_not_told(self):
        reason = not_judged("IoOpsFilter", "io_workload")
        self.assertEqual(const.NOT_JUDGED, reason.code)
        self.assertNotIn(const.NOT_JUDGED, const.OUTER_CODES)
        found = words(differs("NumInstancesFilter", "servers", "fewer than 2", 2))
        self.assertEqual(
            "NumInstancesFilter: servers: expected fewer than 2, found 2", found
        )
