# SPDX-License-Identifier: Apache-2.0
"""What a HostState costs before any filter sees it, part by part."""

import gc
import statistics
import time

from nova import context as nova_context
from nova import objects
from nova.pci import stats as pci_stats
from nova.scheduler import host_manager
from oslo_serialization import jsonutils


def parts(manager, context, rounds):
    """Return CPU microseconds per host of each part; runs in a scheduler process."""
    hosts = manager.host_manager
    [cell] = hosts.enabled_cells
    with nova_context.target_cell(context, cell) as targeted:
        return _parts(hosts, targeted, cell.uuid, context, rounds)


def _parts(hosts, context, cell_uuid, of_all_cells, rounds):
    uuids = [node.uuid for node in objects.ComputeNodeList.get_all(context)]
    db_rows = objects.ComputeNodeList._db_compute_node_get_all_by_uuids(context, uuids)
    nodes = [
        objects.ComputeNode._from_db_object(context, objects.ComputeNode(), row)
        for row in db_rows
    ]
    services = {
        service.host: service
        for service in objects.ServiceList.get_by_binary(
            context, "nova-compute", include_disabled=True
        )
    }
    texts = [node.numa_topology for node in nodes]
    loaded = [jsonutils.loads(text) for text in texts]
    parsed = [objects.NUMATopology.obj_from_db_obj(text) for text in texts]
    known = dict(zip(texts, parsed, strict=True))
    pools = [node.pci_device_pools for node in nodes]

    def state(node):
        made = host_manager.HostState(node.host, node.hypervisor_hostname, cell_uuid)
        made.update(node, dict(services[node.host]), [], {})
        return made

    def one_by_one():
        for node in nodes:
            state(node)

    def frozen():
        # As PerfVMFilter does, at the first request.
        gc.freeze()
        made = [state(node) for node in nodes]
        gc.unfreeze()
        return made

    measured = {
        "compute node: SQL to a dict": lambda: (
            objects.ComputeNodeList._db_compute_node_get_all_by_uuids(context, uuids)
        ),
        "compute node: dict to ComputeNode": lambda: [
            objects.ComputeNode._from_db_object(context, objects.ComputeNode(), row)
            for row in db_rows
        ],
        "service: SQL to Service": lambda: objects.ServiceList.get_by_binary(
            context, "nova-compute", include_disabled=True
        ),
        "HostState, all of it": one_by_one,
        "HostState: service to a dict": lambda: [
            dict(services[node.host]) for node in nodes
        ],
        "HostState: NUMATopology of JSON": lambda: [
            objects.NUMATopology.obj_from_db_obj(text) for text in texts
        ],
        "... of that, json.loads": lambda: [jsonutils.loads(text) for text in texts],
        "... of that, objects of primitives": lambda: [
            objects.NUMATopology.obj_from_primitive(each) for each in loaded
        ],
        "HostState: PciDeviceStats": lambda: [
            pci_stats.PciDeviceStats(topology, stats=pool)
            for topology, pool in zip(parsed, pools, strict=True)
        ],
        "HostState: metrics of JSON": lambda: [
            objects.MonitorMetricList.from_json(node.metrics) for node in nodes
        ],
        "HostStates kept for a request, garbage collection": lambda: [
            state(node) for node in nodes
        ],
        "... with what there was before frozen": frozen,
        # Without track_instance_changes.  No host is mapped here, nor has servers.
        "servers of a host, if nobody tracks them: SQL": lambda: [
            (
                hosts._get_instances_by_host(of_all_cells, node.host),
                objects.InstanceList.get_by_host(context, node.host),
            )
            for node in nodes
        ],
        "instead: the object of the same text, shared": lambda: [
            known[text] for text in texts
        ],
        "instead: a clone of the object of the same text": lambda: [
            known[text].obj_clone() for text in texts
        ],
    }
    costs = {name: [] for name in measured}
    for _ in range(rounds):
        for name, run in measured.items():
            gc.collect()
            started = time.process_time()
            run()
            costs[name].append((time.process_time() - started) / len(nodes) * 1e6)
    found = {name: round(statistics.median(each), 1) for name, each in costs.items()}
    return {"hosts": len(nodes), "texts": len(known), "us": found}
