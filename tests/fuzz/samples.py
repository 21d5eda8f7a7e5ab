# SPDX-License-Identifier: Apache-2.0
"""Good files of each kind, from which odd ones are made."""

import dataclasses
import json
import pathlib

from nova_perfvm.changes.migrations import record
from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import Aggregate, Image, Migration
from nova_perfvm.policy import loader
from tests.unit.changes.migrations.test_execution import execution
from tests.unit.diagnose.audit.test_checks import small
from tests.unit.facts.snapshot.clouds import HP, Cloud

SAMPLE = pathlib.Path(__file__).parents[2] / "etc" / "nova_perfvm" / "perfvm.yaml"

_EVERY_KEY = """\
schema_version: "1.0"
host_shape: [2x20, 2x20x2]
placement: slots
managed_hosts: labelled
classes:
  fast:
    vcpus: 20
    cpu_policy: dedicated
    cpu_thread_policy: prefer
    smt: cores
    numa_nodes: 1
    max_per_host: 2
    exclusive: host
    vif_multiqueue: true
    mem_page_size: 1GB
    disk: {source: volume, volume_type: nvme, read_iops: 10000, write_iops: 5000}
    flavors: {name: "f.{memory_gb}", memory_gb: [64, 128], root_gb: 0}
  small:
    vcpus: 4
    cpu_policy: dedicated
    exclusive: host
    emulator_threads: share
    disk: {source: volume}
    flavors:
      name: "s.{vcpus}.{memory_gb}"
      sizes:
        - {vcpus: 4, memory_gb: 8, root_gb: 0}
        - {vcpus: 4, memory_gb: 16, root_gb: 0}
  general: {default: true, disk: {source: image}}
"""
_UNITS = 'schema_version: "1.0"\nplacement: units\n'

_INVENTORY = """\
schema_version: "1.0"
hosts:
  hp1: {shape: 2x20, mode: dedicated, memory_gb: 500}
  hp2: {shape: 2x24x2, mode: dedicated, reserve: 2, class: high-performance}
  g1:
    cells:
      - {dedicated: "", shared: "0-19", memory_gb: 250}
      - dedicated: 20-29
        shared: 30-39,^35
        memory_gb: 250
        siblings: ["20,30", "21,31"]
"""

_OPTIONS = """\
[DEFAULT]
debug = false
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_perfvm.scheduler.filters.all_filters
enabled_filters: ComputeFilter,PerfVMFilter,
  NUMATopologyFilter
[scheduler]
enable_isolated_aggregate_filtering = True
max_placement_results = 1000
[workarounds]
disable_fallback_pcpu_query = False
[placement]
allocation_conflict_retry_count = 1
"""


def policies():
    """Return texts of policy files."""
    return (SAMPLE.read_text(), _EVERY_KEY, _UNITS, loader.dump(loader.load()))


def inventories():
    """Return texts of inventory files."""
    return (_INVENTORY,)


def options():
    """Return texts of copies of nova.conf and placement.conf in one."""
    return (_OPTIONS,)


def snapshots():
    """Return texts of snapshots, of a cloud with slots and one with units."""
    cloud = small()
    cloud.add_host("hp2")
    cloud.add_hp("d", "hp2", 0)
    cloud.parts |= {
        "images": (Image("image", "debian", {"hw_vif_multiqueue_enabled": "true"}),),
        "migrations": (Migration("m", "d", "migration", "done", "hp2", "hp1"),),
        "aggregates": (
            Aggregate(1, "u1", "fast", {"perfvm:class": "high-performance"}, {"hp1"}),
            Aggregate(2, "u2", "tenant", {"filter_tenant_id": "p"}, {"g1"}),
        ),
        "gaps": ("cell2 is down",),
    }
    units = Cloud(dataclasses.replace(loader.load(), placement="units"))
    units.add_host("e1")
    units.add_hp("e", "e1", 0)
    return tuple(snapshot.dumps(c.snapshot()) for c in (cloud, units))


def records():
    """Return texts of records of plans that are carried out."""
    return (record.dumps(execution()),)


def topologies():
    """Return what lscpu prints."""
    rows = [
        {"cpu": c, "node": c % 40 // 20, "core": c % 40, "socket": 0, "online": True}
        for c in range(80)
    ]
    return (json.dumps({"cpus": rows}),)


FLAVOR = HP
