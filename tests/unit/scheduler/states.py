# SPDX-License-Identifier: Apache-2.0
"""Real HostStates and RequestSpecs of Nova, without a cloud around them."""

from nova import objects
from nova.scheduler import host_manager
from nova.virt import hardware
from oslo_utils.fixture import uuidsentinel

from nova_perfvm import rules
from nova_perfvm.policy import HostShape
from nova_perfvm.scheduler import residents

objects.register_all()

GENERAL = {"name": "g.2c.4g", "vcpus": 2, "memory_mb": 4096, "extra_specs": {}}
HP_SPECS = {
    "perfvm:class": "high-performance",
    "hw:cpu_policy": "dedicated",
    "hw:numa_nodes": "1",
    "hw:vif_multiqueue_enabled": "true",
    "resources:CUSTOM_PERFVM_SLOT": "1",
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "required",
}


def numa_topology(
    shape="2x20", *, dedicated=None, shared=(), memory_mb=512000, mempages=()
):
    """Return Nova's topology of an idle host.

    :param dedicated: CPUs of cpu_dedicated_set; None for all
    """
    shape = HostShape.parse(shape) if isinstance(shape, str) else shape
    per_cell = shape.cores * shape.threads
    every = set(range(shape.cpus))
    dedicated = every if dedicated is None else set(dedicated)
    cells = []
    for index in range(shape.cells):
        cpus = set(range(index * per_cell, (index + 1) * per_cell))
        known = cpus & (dedicated | set(shared))
        groups = [
            set(range(first, first + shape.threads)) & known
            for first in range(min(cpus), max(cpus) + 1, shape.threads)
        ]
        cells.append(
            objects.NUMACell(
                id=index,
                cpuset=cpus & set(shared),
                pcpuset=cpus & dedicated,
                pinned_cpus=set(),
                cpu_usage=0,
                memory=memory_mb // shape.cells,
                memory_usage=0,
                siblings=[group for group in groups if group],
                mempages=[
                    objects.NUMAPagesTopology(
                        size_kb=size_kb, total=total, used=used, reserved=reserved
                    )
                    for size_kb, total, used, reserved in mempages
                ],
                socket=index,
            )
        )
    return objects.NUMATopology(cells=cells)


def host_state(name="hp1", topology=None, *, labels=(), vcpus_used=0, num_instances=0):
    """Return a HostState; ``labels`` are perfvm:class values, one aggregate each."""
    state = host_manager.HostState(name, name, uuidsentinel.cell)
    state.uuid = getattr(uuidsentinel, name)
    state.numa_topology = numa_topology() if topology is None else topology
    state.vcpus_used = vcpus_used
    state.num_instances = num_instances
    state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
    state.aggregates = [
        objects.Aggregate(id=i, metadata={"perfvm:class": label}, hosts=[name])
        for i, label in enumerate(labels)
    ]
    state.allocation_candidates = [
        {
            "allocations": {state.uuid: {"resources": {"MEMORY_MB": 1}}},
            "mappings": {"": [state.uuid]},
        }
    ]
    return state


def request_spec(
    name="hp.20c.64g",
    vcpus=20,
    memory_mb=65536,
    extra_specs=None,
    image_props=None,
    is_bfv=True,
    hints=None,
):
    """Return a RequestSpec whose NUMA topology Nova itself derived."""
    flavor = objects.Flavor(
        name=name,
        vcpus=vcpus,
        memory_mb=memory_mb,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        extra_specs=dict(HP_SPECS if extra_specs is None else extra_specs),
    )
    image = objects.ImageMeta(
        name="image", properties=objects.ImageMetaProps(**(image_props or {}))
    )
    spec = objects.RequestSpec(
        flavor=flavor,
        image=image,
        numa_topology=hardware.numa_get_constraints(flavor, image),
        pci_requests=objects.InstancePCIRequests(requests=[]),
        instance_uuid=uuidsentinel.instance,
        num_instances=1,
        requested_resources=[],
        scheduler_hints=hints or {},
    )
    if is_bfv is not None:
        spec.is_bfv = is_bfv
    return spec


def reasons(judge, state, spec):
    """Return why a filter refuses a host."""
    request = judge._request(spec)
    refused = rules.check_request(judge.policy, request)
    return refused or judge._judge(request, state, residents.Residents([state]))[1]
