# SPDX-License-Identifier: Apache-2.0
"""The flavors of each scheme, and requests for them."""

import dataclasses
import functools
import json
import uuid

from nova import objects
from nova.virt import hardware

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import Elastic, loader

HIGH, GENERAL, MIXED = "high-performance", "general", "16 vCPUs"
# What is asked for, of each class.
ASKED = {HIGH: "hp.20c.64g", GENERAL: "g.2c.4g", MIXED: "p.16c"}
PROJECT, USER = "9f1a0d1c0f6d4b0f9c8d3f9f6f3f1c11", "5b1d2c3e4f5a6b7c8d9e0f1a2b3c4d5e"
# What a cloud without this package says of a pinned VM.
_STOCK = {
    "hw:cpu_policy": "dedicated",
    "hw:numa_nodes": "1",
    "hw:vif_multiqueue_enabled": "true",
}
_PLACEMENT = {"stock": "none", "filter": "none", "slots": "slots", "units": "units"}
# Pinned VMs of several sizes, with 4 GiB for each vCPU, and one over two NUMA nodes.
_CELLS = {
    "kind": "policy",
    "schema_version": "1.0",
    "placement": "cells",
    "classes": {
        name: {
            "cpu_policy": "dedicated",
            "vcpus": vcpus,
            "numa_nodes": nodes,
            "disk": {"source": "volume"},
            "flavors": {"name": made, "memory_gb": [4 * vcpus], "root_gb": 0},
        }
        for name, made, vcpus, nodes in (
            ("small", "p.4c", 4, 1),
            ("medium", "p.8c", 8, 1),
            ("large", "p.16c", 16, 1),
            (HIGH, "p.20c", 20, 1),
            ("wide", "w.16c", 16, 2),
        )
    }
    | {"general": {"default": True, "cpu_policy": "shared"}},
}

objects.register_all()


@functools.cache
def policy(scheme):
    """Return the built-in policy with the placement of a scheme, or that of cells.

    :param scheme: for units also with the number of children, such as ``units8``
    """
    if scheme == "cells":
        return loader.parse(json.dumps(_CELLS))
    if scheme not in _PLACEMENT:
        elastic = Elastic(int(scheme.removeprefix("units")))
        return dataclasses.replace(policy("units"), elastic=elastic)
    return dataclasses.replace(loader.load(), placement=_PLACEMENT[scheme])


@functools.cache
def generated(scheme):
    """Return a scheme's flavors by name, as the package makes them."""
    return {made.name: made for made in generate_flavors(policy(scheme))}


def sizes(class_name):
    """Return the names of a class's flavors."""
    return [
        name
        for name, made in generated("filter").items()
        if made.class_name == class_name
    ]


@functools.cache
def flavor(scheme, name):
    """Return a flavor as Nova has it."""
    mixed = name in generated("cells")
    made = generated("cells" if mixed else scheme)[name]
    specs = dict(made.extra_specs)
    if scheme == "stock":
        pinned = specs.get("hw:cpu_policy") == "dedicated"
        specs = dict(_STOCK) if pinned else {}
    return objects.Flavor(
        id=1,
        flavorid=name,
        name=name,
        vcpus=made.vcpus,
        memory_mb=made.memory_mb,
        root_gb=made.root_gb,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        vcpu_weight=0,
        disabled=False,
        is_public=True,
        extra_specs=specs,
    )


def request(context, scheme, name, number=1):
    """Return a request for one VM as nova-conductor sends it.

    :param number: that of the request's record
    """
    wanted = flavor(scheme, name)
    image = objects.ImageMeta(
        id=str(uuid.uuid4()),
        name="guest",
        disk_format="raw",
        container_format="bare",
        min_ram=0,
        min_disk=0,
        properties=objects.ImageMetaProps(),
    )
    spec = objects.RequestSpec.from_components(
        context,
        str(uuid.uuid4()),
        image,
        wanted,
        hardware.numa_get_constraints(wanted, image),
        objects.InstancePCIRequests(requests=[]),
        {},
        None,
        None,
        security_groups=objects.SecurityGroupList(objects=[]),
        project_id=PROJECT,
        user_id=USER,
        port_resource_requests=[],
        request_level_params=objects.RequestLevelParams(),
    )
    spec.id = number
    spec.is_bfv = wanted.root_gb == 0
    spec.requested_networks = objects.NetworkRequestList(objects=[])
    # Over the wire, as the scheduler gets it.
    return objects.RequestSpec.obj_from_primitive(spec.obj_to_primitive(), context)
