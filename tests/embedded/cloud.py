# SPDX-License-Identifier: Apache-2.0
"""The in-process cloud, whose hosts fail and whose servers move."""

import uuid
from xml.etree import ElementTree as ET

from nova import context

from nova_perfvm import cpuset
from nova_perfvm.rules.enabled_filters import NOVA_FILTERS, NOVAS_NUMA_FILTER
from tests.cloud import EmbeddedCloud
from tests.cloud.cloud import DEFAULT_WEIGHERS, configured
from tests.cloud.servers import until
from tests.embedded.hosts import UnevenHostSettings
from tests.embedded.log import Log
from tests.embedded.servers import ServerOperations, at_once
from tests.embedded.volumes import Multiattach, Reimaging

FILTERS_WITHOUT_PERFVM = (*NOVA_FILTERS, NOVAS_NUMA_FILTER)
NOVA_WEIGHERS = DEFAULT_WEIGHERS[:1]


class OperatedCloud(EmbeddedCloud):
    """What starts the cloud, what is done to it and what can be seen in it.

    :ivar log: what the scheduler and nova_perfvm logged
    :ivar member_api: a client of Nova's API without the rights of administrators
    :ivar servers: what can be done to servers
    """

    SETTINGS = UnevenHostSettings
    _stdlog = None

    def _setUp(self):  # noqa: N802
        self.log = self.useFixture(Log())
        try:
            super()._setUp()
        finally:
            # The services forget it when they are cleaned up.
            self._stdlog = vars(self._services).get("stdlog")
        self.member_api = self._services.api_fixture.api
        self.member_api.microversion = self.api.microversion
        self.useFixture(Multiattach(self._services.cinder))
        self.useFixture(Reimaging(self._services.cinder, self.api))
        self.servers = ServerOperations(
            self.api, self._services.cells.states, self._allocations
        )

    def restart_configured(self, name, policy, mode):
        """Start a host's compute again, as another policy has it configured."""
        was = self._settings[name]
        self.restart_host(name, **configured(policy, mode, was.shape, was.memory_gb))

    def domains(self, host):
        """Return {server's id: the XML that Nova generated} of a host's domains."""
        return dict(sorted(self._connections[host].xml().items()))

    def memnodes(self, server):
        """Return {the guest's NUMA node: (mode, the host's NUMA nodes)} of a server."""
        server = self.servers.show(server)
        root = ET.fromstring(self.domains(server.host)[server.id])
        return {
            int(node.get("cellid")): (
                node.get("mode"),
                frozenset(cpuset.parse(node.get("nodeset"))),
            )
            for node in root.findall("numatune/memnode")
        }

    def restart_host(self, name, **changes):
        """Start a host's compute again, with other settings if given."""
        settings = self._settings[name]
        if changes:
            settings = type(settings)(**(vars(settings) | changes))
        self._stop(name)
        self._start(name, settings)

    def _stop(self, name):
        """Stop a host's compute; its guests stay where they are."""
        self._services.computes.pop(name).stop()
        self._services.compute_rp_uuids.pop(name)

    def restart_scheduler(self, enabled_filters):
        """Start the scheduler again with these filters; all else runs on."""
        services = self._services
        services.scheduler.stop()
        services.flags(enabled_filters=list(enabled_filters), group="filter_scheduler")
        services.scheduler = services._setup_scheduler_service()

    def fail_host(self, name, *, stop=False):
        """Let Nova take a host for down, as a fencing agent would.

        :param stop: end its compute, too; its guests stay as they are
        """
        self._force_down(name, forced_down=True)
        if stop:
            self._stop(name)

    def recover_host(self, name):
        """Start the compute of a host that was stopped, and let Nova know."""
        self._start(name, self._settings[name])
        self._end_deleted_guests(name)
        # Not before it has ended the guests that were evacuated.
        self._force_down(name, forced_down=False)
        until(lambda: self._service(name)["state"] == "up", f"report of {name}")

    def _end_deleted_guests(self, name):
        """Let a compute end guests of deleted servers, as it does when it starts.

        It does so in a periodic task, and Nova's tests run none.
        """
        manager = self._services.computes[name].manager
        manager._cleanup_running_deleted_instances(context.get_admin_context())

    def _force_down(self, name, *, forced_down):
        service = self._service(name)["id"]
        self.api.put_service(service, {"forced_down": forced_down})

    def _service(self, name):
        (service,) = self.api.get_services(host=name, binary="nova-compute")
        return service

    def label_hosts(self, class_name, *hosts):
        """Put hosts into an aggregate with metadata ``perfvm:class``."""
        self.aggregate_hosts({"perfvm:class": class_name}, *hosts)

    def aggregate_hosts(self, metadata, *hosts):
        """Put hosts into an aggregate with some metadata; return its ID."""
        body = {"aggregate": {"name": str(uuid.uuid4())}}
        aggregate = self.api.post_aggregate(body)["id"]
        self.api.api_post(
            f"/os-aggregates/{aggregate}/action",
            {"set_metadata": {"metadata": metadata}},
        )
        for host in hosts:
            self.api.add_host_to_aggregate(aggregate, host)
        return aggregate

    def boot_at_once(self, flavors, *, images=None):
        """Create a server of each flavor, all at the same time.

        :param images: one for each flavor; without them all have the cloud's own
        """
        images = images or [self.image] * len(flavors)
        return at_once(
            lambda asked: self.boot(asked[0], image=asked[1]),
            list(zip(flavors, images, strict=True)),
        )

    def run_periodics(self):
        """Let every compute audit its resources, as it does each minute."""
        self._services._run_periodics()

    def usages(self, host):
        """Return {resource class: used} of a host, from Placement."""
        return self._provider(host, "usages")["usages"]

    def capacity(self, host):
        """Return {resource class: amount that may be used}, from Placement."""
        inventories = self._provider(host, "inventories")["inventories"]
        return {
            name: int((found["total"] - found["reserved"]) * found["allocation_ratio"])
            for name, found in inventories.items()
        }

    def consumers(self, host):
        """Return the UUIDs of servers and migrations with allocations on a host."""
        return set(self._provider(host, "allocations")["allocations"])

    def traits(self, host):
        """Return the traits of a host, from Placement."""
        return set(self._provider(host, "traits")["traits"])

    def nova_log(self):
        """Return all that Nova's services and Placement logged, from INFO up."""
        return self._stdlog.logger.output if self._stdlog else ""

    def _provider(self, host, what):
        provider = self._services.compute_rp_uuids[host]
        return self._placement(f"/resource_providers/{provider}/{what}")

    def _allocations(self, server_id):
        return self._placement(f"/allocations/{server_id}")["allocations"]

    def _placement(self, path):
        # Traits are known from 1.6 on.
        return self._services.placement.get(path, version="1.6").body
