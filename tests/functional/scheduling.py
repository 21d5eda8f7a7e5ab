# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler asked as nova-conductor asks it, in thought."""

import uuid

from nova import context, exception, objects
from nova.scheduler import rpcapi

from nova_perfvm.cloud.answers import allocation


class SchedulingMixin:
    """For tests with a cloud and an administrator's API."""

    def admin(self):
        return context.RequestContext("user", str(uuid.uuid4()), is_admin=True)

    def takes(self, asker, spec, host):
        """Return whether nova-scheduler takes a host for a server."""
        asking = spec.instance_uuid
        spec.requested_destination = objects.Destination(host=host)
        before = allocation(self.admin_api, asking)
        try:
            rpcapi.SchedulerAPI().select_destinations(
                asker, spec, [asking], return_objects=True
            )
        except exception.NoValidHost:
            return False
        self._put_back(asking, before)
        # In thought the server is on the host; a compute tells what is there, else
        # every two minutes.
        here = objects.InstanceList.get_uuids_by_host(asker, host)
        manager = self.cloud._services.scheduler.manager
        manager.sync_instance_info(asker, host, here)
        return True

    def _put_back(self, consumer, before):
        """Take away what the scheduler claimed."""
        path = f"/allocations/{consumer}"
        if not before["allocations"]:
            self.admin_api.placement("DELETE", path)
            return
        now = allocation(self.admin_api, consumer)
        self.admin_api.placement(
            "PUT", path, now | {"allocations": before["allocations"]}
        )
