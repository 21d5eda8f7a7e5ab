# SPDX-License-Identifier: Apache-2.0
"""The cloud of a row: with nova_perfvm, or Nova by itself on the same hosts."""

import dataclasses
import itertools
import json
import pathlib

import fixtures
from nova.pci import request as pci_request
from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_utils import units

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import converge, nova_database
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import Image
from nova_perfvm.generate.flavors import generate_flavors, placement_names
from nova_perfvm.generate.labels import label_of
from nova_perfvm.policy import HostShape, loader
from tests.cloud import DEFAULT_FILTERS
from tests.cloud.cloud import DEFAULT_WEIGHERS, configured
from tests.embedded import FILTERS_WITHOUT_PERFVM, NOVA_WEIGHERS, OperatedCloud
from tests.embedded.hosts import UnevenHostSettings
from tests.functional.client import SDKMixin
from tests.matrix.factors import NOTHING
from tests.matrix.policies import (
    LARGE_GB,
    SHAPES,
    SMALL_GB,
    document,
    nodes_of,
    vcpus_of,
)

MEMORY_GB = 256
# Of each NUMA node where pages are large.
POOL_GB = 64
PAGES_KB = {"large": 2048, "2MB": 2048, "1GB": units.Mi}
PCI_FILTER = "PciPassthroughFilter"
IDS = {"vendor_id": fakelibvirt.PCI_VEND_ID, "product_id": fakelibvirt.PCI_PROD_ID}
ALIAS = {"name": "qat"} | IDS
# HOSTS take the row's VM; under slots and cells the other class has its own host.
HOSTS, OTHERS_HOST = ("a", "b", "c"), "d"


@dataclasses.dataclass(frozen=True)
class Settings(UnevenHostSettings):
    """A host with pages of a size, one PCI device, and a socket for each NUMA node."""

    page_kb: int = 0
    device_node: int = 0

    def connection(self, hostname, directory):
        made = super().connection(hostname, directory)
        for cell in made.host_info.numa_topology.cells:
            pool_kb = POOL_GB * units.Mi if self.page_kb else 0
            pages = [(4, (cell.memory - pool_kb) // 4)]
            if pool_kb:
                pages.append((self.page_kb, pool_kb // self.page_kb))
            cell.mempages = fakelibvirt.create_mempages(pages)
            for cpu in cell.cpus:
                cpu.socket_id = cell.id
        made.pci_info = fakelibvirt.HostPCIDevicesInfo(
            num_pci=1, num_pfs=0, num_vfs=0, numa_node=self.device_node
        )
        return made


class RowCloud(OperatedCloud):
    SETTINGS = Settings


class Cloud(SDKMixin, fixtures.Fixture):
    """The cloud of a row.

    :param ours: with nova_perfvm; else Nova by itself
    :ivar flavors: {what for: name}: ``subject``, ``large`` that it is resized to,
        ``alike`` without a device, and ``other`` of the other class
    """

    def __init__(self, row, *, ours):
        super().__init__()
        self.row = row
        self.ours = ours

    def _setUp(self):  # noqa: N802
        row = self.row
        # The hosts of these schemes have no CPU sets.
        self.falls_back = row.scheme in {"units", "none"}
        self._path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "policy"
        self._write(former=row.size == "former")
        filters = DEFAULT_FILTERS if self.ours else FILTERS_WITHOUT_PERFVM
        # It comes before the filter of NUMA nodes, as Nova's documents have it.
        self._filters = (*filters[:-1], PCI_FILTER, filters[-1])
        counted = row.counted == "yes"
        self._forget_aliases()
        self.addCleanup(self._forget_aliases)
        self.cloud = RowCloud(
            enabled_filters=self._filters,
            weight_classes=DEFAULT_WEIGHERS if self.ours else NOVA_WEIGHERS,
            policy_file=str(self._path) if self.ours else None,
            disable_fallback_pcpu_query=not self.falls_back,
            options={
                ("scheduler", "enable_isolated_aggregate_filtering"): self.ours,
                ("pci", "alias"): [json.dumps(ALIAS)],
                ("pci", "device_spec"): [json.dumps(IDS)],
                ("pci", "report_in_placement"): counted,
                ("filter_scheduler", "pci_in_placement"): counted,
            },
        )
        self.useFixture(self.cloud)
        self.servers = self.cloud.servers
        self.api = API(self.connection("admin", "admin,member,reader"))
        self._start()
        self.image = self.cloud.create_image(**self.properties)
        self._create_flavors()

    def _write(self, *, former):
        self._path.write_text(json.dumps(document(self.row, former=former)))
        self.policy = loader.load(self._path)

    def _forget_aliases(self):
        for name in ("get_alias_from_config", "_get_alias_from_config"):
            read = getattr(pci_request, name, None)
            if hasattr(read, "cache_clear"):
                read.cache_clear()

    def _start(self):
        """Start the hosts, and do with them what the documents say."""
        row = self.row
        apart = ("dedicated", "shared") if row.pinned else ("shared", "dedicated")
        schemes = {"units": ("elastic", "elastic"), "none": (None, None)}
        mode, others = schemes.get(row.scheme, apart)
        modes = dict.fromkeys(HOSTS, mode)
        if row.beside == "other" and mode != others:
            modes[OTHERS_HOST] = others
        shape = HostShape.parse(SHAPES[row.smt])
        for name, mode in modes.items():
            settings = mode and configured(self.policy, mode, str(shape), MEMORY_GB)
            self.cloud.start_host(
                name,
                str(shape),
                memory_gb=MEMORY_GB,
                page_kb=PAGES_KB.get(row.pages, 0),
                device_node=int(row.device),
                **(settings or {}),
            )
        self.hosts, self.shape = tuple(modes), shape
        if row.traits != NOTHING:
            self.api.placement("PUT", f"/traits/{row.traits}")
            for name in HOSTS:
                self.change_traits(name, more=[row.traits])
        if row.managed == "labelled" and self.ours:
            self.cloud.label_hosts(label_of(self.policy.classes), *self.hosts)
        enrolled = {"units": "elastic", "cells": "dedicated"}.get(row.scheme, "none")
        for name, mode in modes.items() if self.ours else ():
            if mode == enrolled:
                converge.change_host(self.api, name, self._plan)

    def _plan(self, view):
        seen = nova_database.with_cells(view.cloud, nova_database.compute_nodes([]))
        # The host offers one thread of each core, so enroll cannot compute them.
        row, slots = self.row, None
        if (row.scheme, row.smt) == ("units", "cores"):
            slots = 10 if (row.size, row.most) == ("small", NOTHING) else 2
        return plan_enroll(self.policy, view_of(seen, view.name), slots=slots)

    @property
    def properties(self):
        """The properties of the image: NUMA nodes by hand."""
        row = self.row
        if row.numa == "none":
            return {}
        nodes, vcpus, memory_mb = nodes_of(row), vcpus_of(row)[0], SMALL_GB * 1024
        first = vcpus // nodes
        memory = [memory_mb // nodes] * nodes
        if row.numa == "uneven cpus":
            first //= 2
        if row.numa == "uneven memory":
            memory = [memory_mb // 4 * 3, memory_mb // 4]
        ends = [0, first, vcpus] if nodes == 2 else [0, vcpus]
        found = {} if row.pinned else {"hw_numa_nodes": str(nodes)}
        for node, (start, end) in enumerate(itertools.pairwise(ends)):
            found[f"hw_numa_cpus.{node}"] = f"{start}-{end - 1}"
            found[f"hw_numa_mem.{node}"] = str(memory[node])
        return found

    def _create_flavors(self):
        made = {flavor.name: flavor for flavor in generate_flavors(self.policy)}
        for kind, name in placement_names(made.values()) if self.ours else ():
            plural = {"trait": "traits", "resource class": "resource_classes"}[kind]
            self.api.placement("PUT", f"/{plural}/{name}")
        row, vcpus = self.row, vcpus_of(self.row)[0]
        names = f"hp.{vcpus}c", "g.4c"
        own, other = names if row.pinned else (names[1], "hp.20c")
        self.flavors = {
            "alike": self._create(made[f"{own}.{SMALL_GB}g"]),
            "subject": self._create(made[f"{own}.{SMALL_GB}g"], device=True),
            "large": self._create(made[f"{own}.{LARGE_GB}g"], device=True),
            "other": self._create(made[f"{other}.{SMALL_GB}g"]),
        }

    def _create(self, flavor, *, device=False):
        specs = dict(flavor.extra_specs)
        if not self.ours:
            # Stock Nova reads only these.
            specs = {key: v for key, v in specs.items() if key.startswith("hw:")}
        name = flavor.name
        if device and self.row.pci != "none":
            name += ".qat"
            specs |= {
                "pci_passthrough:alias": "qat:1",
                "hw:pci_numa_affinity_policy": self.row.pci,
            }
        if name not in {found["name"] for found in self.cloud.api.get_flavors()}:
            self.cloud.create_flavor(
                name, flavor.vcpus, flavor.memory_mb, flavor.root_gb, specs
            )
        return name

    @property
    def source(self):
        """What the root disk of a VM is, as options of ``boot``."""
        return {"from_volume": self.row.pinned and self.row.numa == "none"}

    def change_policy(self):
        """Let new VMs have fewer vCPUs, as the documents say."""
        self._write(former=False)
        for name in {self.flavors[kind] for kind in ("alike", "subject", "large")}:
            self.cloud.api.delete_flavor(name)
        if self.ours:
            self.cloud.restart_scheduler(self._filters)
        names = {flavor.name: flavor for flavor in generate_flavors(self.policy)}
        today = f"hp.{vcpus_of(self.row)[1]}c.{LARGE_GB}g"
        self.flavors["large"] = self._create(names[today], device=True)

    def seen(self):
        """Return a snapshot of all that there is, images and devices, too."""
        seen = nova_database.with_cells(
            read_snapshot(self.api),
            nova_database.compute_nodes([]),
            devices=nova_database.server_devices([]),
        )
        shown = {self.image: self.properties, self.cloud.image: {}}
        images = tuple(Image(name, name, of) for name, of in shown.items())
        return dataclasses.replace(seen, images=images)
