# SPDX-License-Identifier: Apache-2.0
"""What a server has already, by Nova's databases: evidence that no user can give.

A request to the scheduler does not say whether it makes a server or moves one:
both have a flavor and a server's UUID, and hints are the user's.  The databases
tell.  Until a new server has a host, it is in no cell, or has none in its record
there; one that is moved has its source, or is shelved and offloaded.  Its record
keeps its flavor until a resize has brought it to the new one, so that a resize to
another size, or from another class, can be told, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova.compute import vm_states
from oslo_log import log as logging

from nova_perfvm import constants as const
from nova_perfvm.scheduler import instances

if TYPE_CHECKING:
    from nova.objects import RequestSpec

LOG = logging.getLogger(__name__)


def running_vcpus(spec_obj: RequestSpec) -> int | None:
    """Return how many vCPUs the server has in the class that its request names.

    None for a new server, and for one of another class.  It costs two queries.
    Where they fail nobody can tell, and the request is taken for a move: a new
    server of a former size can be deleted, one that cannot be evacuated is lost.
    """
    try:
        instance = instances.find(spec_obj.instance_uuid)
    except Exception as exc:  # noqa: BLE001  whatever it is, nobody can tell
        LOG.warning(
            "Cannot look up whether server %(uuid)s exists (%(error)s), so it is taken "
            "for one that runs with the %(vcpus)d vCPUs of the request.",
            {
                "uuid": spec_obj.instance_uuid,
                "error": exc,
                "vcpus": spec_obj.flavor.vcpus,
            },
        )
        return int(spec_obj.flavor.vcpus)
    if instance is None or not (
        instance.host or instance.vm_state == vm_states.SHELVED_OFFLOADED
    ):
        return None
    has, wants = instance.flavor, spec_obj.flavor
    if has.extra_specs.get(const.CLASS_KEY) != wants.extra_specs.get(const.CLASS_KEY):
        return None
    return int(has.vcpus)
