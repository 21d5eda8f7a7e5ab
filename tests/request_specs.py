# SPDX-License-Identifier: Apache-2.0
"""What nova-conductor asks nova-scheduler for."""

from nova import objects
from nova.pci import request as pci_request
from nova.virt import hardware


def new_server(asker, server, flavor, image, zone=""):
    """Return the request for a new server.

    :param server: its ID
    :param image: as Nova hands it on
    """
    kind = objects.Flavor.get_by_name(asker, flavor)
    meta = objects.ImageMeta.from_dict(image)
    policy = hardware.get_pci_numa_policy_constraint(kind, meta)
    spec = objects.RequestSpec.from_components(
        asker,
        server,
        meta,
        kind,
        hardware.numa_get_constraints(kind, meta),
        pci_request.get_pci_requests_from_flavor(kind, affinity_policy=policy),
        {},
        None,
        zone or None,
        security_groups=objects.SecurityGroupList(objects=[]),
        request_level_params=objects.RequestLevelParams(),
    )
    spec.is_bfv = False
    return spec
