# SPDX-License-Identifier: Apache-2.0
"""The real nova-api and nova-scheduler, asked for a server that is never built."""

import contextlib
import copy
import dataclasses
import logging
import re
import uuid

import fixtures
from nova import context, exception, objects
from nova.conductor import api as conductor_api
from nova.scheduler import utils
from nova.tests.fixtures import CinderFixture
from nova.tests.functional.api.client import OpenStackApiException
from oslo_messaging.rpc.dispatcher import ExpectedException

# What refuses a host beside filters, as the dry run names it.
PLACEMENT, DESTINATION = "placement", "destination"
# Placement's microversion that tells the generation of a consumer.
CONSUMERS = "1.28"
_RETURNED = re.compile(r"Filter (\w+) returned (\d+) host")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What nova-scheduler makes of a request.

    :ivar offered: whether Placement offers any of the hosts
    :ivar error: why it fails for all hosts: a prefilter's words, or an exception
    :ivar selected: name of the host that it chooses, empty if none
    :ivar weighed: hosts with their weights, the best first
    :ivar counts: filters in their order, with the number of hosts that each let pass
    """

    offered: bool
    error: str
    selected: str
    weighed: tuple[tuple[str, float], ...]
    counts: tuple[tuple[str, int], ...]

    @property
    def passed(self):
        """Return the names of the hosts that all filters let pass."""
        return frozenset(host for host, _ in self.weighed)

    @property
    def refused_by(self):
        """Return what refused the last host: a filter, or another; empty if none."""
        if self.weighed:
            return ""
        if self.counts:
            return self.counts[-1][0]
        return DESTINATION if self.offered else PLACEMENT


class Requests:
    """nova-api: what it asks the conductor for, in place of building servers."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._asked = None

    def of(self, name, body, hints):
        """Return the RequestSpec of a server, or why nova-api refuses it.

        :param body: members of the request's ``server``
        """
        server = {"name": name, "networks": "none", **body}
        self._asked = None
        with fixtures.MockPatchObject(
            conductor_api.ComputeTaskAPI, "schedule_and_build_instances", self._keep
        ):
            try:
                self._cloud.api.post_server(
                    {
                        "server": server,
                        "os:scheduler_hints": hints,
                    }
                )
            except OpenStackApiException as exc:
                return None, str(exc)
        return self._asked, ""

    def _keep(self, _asker, build_requests, request_spec, *_args, **_kwargs):
        """Keep the first RequestSpec, and leave nothing of the server."""
        (spec,) = request_spec
        for request in build_requests:
            request.destroy()
        admin = context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            admin, spec.instance_uuid
        )
        mapping.destroy()
        spec = copy.deepcopy(spec)
        spec.destroy()
        self._asked = spec


def volume(image):
    """Return the members of a request for a server whose root disk is a volume.

    :param image: ID of the image that it is made of; None for one that is there
    """
    disk = {"boot_index": 0, "destination_type": "volume"}
    if image is None:
        there = CinderFixture.IMAGE_BACKED_VOL
        disk |= {"source_type": "volume", "uuid": there}
    else:
        # As large as any image wants it.
        disk |= {"source_type": "image", "uuid": image, "volume_size": 1000}
    return {"block_device_mapping_v2": [disk]}


class Scheduler:
    """nova-scheduler's manager, and what its filters log."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._placement = cloud._services.placement

    def forget(self):
        """Let conductor look anew which policies of groups the filters support."""
        for name in vars(utils):
            if name.startswith("_SUPPORTS_"):
                setattr(utils, name, None)

    def ask_filters(self, names, spec, host):
        """Return the Outcome for one host, which these filters alone judge."""
        manager = self._cloud._services.scheduler.manager.host_manager
        filters = manager._choose_host_filters(sorted(names))
        with fixtures.MockPatchObject(manager, "enabled_filters", filters):
            return self.ask(spec, host)

    def ask(self, spec, host=None, count=1):
        """Return the Outcome of a RequestSpec, of which nothing stays.

        :param host: name of the only host that is asked about
        :param count: how many such servers are asked for; the Outcome tells of the
            first, and selects a host if there is one for each
        """
        manager, spec = self._cloud._services.scheduler.manager, copy.deepcopy(spec)
        admin = context.RequestContext(
            spec.user_id, spec.project_id, is_admin=True, global_request_id=None
        )
        if host is not None:
            spec.requested_destination = objects.Destination(host=host)
        spec.num_instances = count
        servers = [spec.instance_uuid, *(str(uuid.uuid4()) for _ in range(count - 1))]
        paths = [f"/allocations/{server}" for server in servers]
        before = self._placement.get(paths[0], version=CONSUMERS).body
        weighed, error, selected = [], "", ""
        offered = []
        weigh = manager.host_manager.get_weighed_hosts
        choose = manager.host_manager.get_filtered_hosts

        def chosen(hosts, *args):
            offered.extend(hosts := list(hosts))
            return choose(hosts, *args)

        def kept(hosts, asked):
            found = weigh(hosts, asked)
            weighed.append(tuple((one.obj.host, one.weight) for one in found))
            return found

        with (
            _filters_log() as lines,
            fixtures.MockPatchObject(manager.host_manager, "get_weighed_hosts", kept),
            fixtures.MockPatchObject(
                manager.host_manager, "get_filtered_hosts", chosen
            ),
        ):
            try:
                utils.setup_instance_group(admin, spec)
                ((found, *_), *_) = manager.select_destinations(
                    admin,
                    spec_obj=spec,
                    instance_uuids=servers,
                    return_objects=True,
                )
                selected = found.service_host
            except ExpectedException as exc:
                error = _words(exc.exc_info[1])
            except Exception as exc:  # noqa: BLE001  # so may conductor and filters
                error = repr(exc)
        if selected:
            self._restore(paths[0], before)
            for path in paths[1:]:
                self._placement.delete(path)
        counts = tuple(
            (found[1], int(found[2])) for found in map(_RETURNED.match, lines) if found
        )
        return Outcome(
            bool(offered), error, selected, weighed[0] if weighed else (), counts
        )

    def _restore(self, path, before):
        """Take away what the scheduler has claimed for a server."""
        if not before["allocations"]:
            self._placement.delete(path)
            return
        now = self._placement.get(path, version=CONSUMERS).body
        body = now | {"allocations": before["allocations"]}
        answer = self._placement.put(path, body, version=CONSUMERS)
        if answer.status >= 300:
            raise AssertionError(answer.body)


def stored(server):
    """Return the RequestSpec of a server as conductor asks for another host with it.

    :param server: a BootedServer
    """
    admin = context.get_admin_context()
    spec = objects.RequestSpec.get_by_instance_uuid(admin, server.id)
    spec.requested_resources = []
    spec.request_level_params = objects.RequestLevelParams()
    spec.generate_request_groups_from_pci_requests()
    # nova-api has it ignored, without [DEFAULT]allow_resize_to_same_host.
    spec.ignore_hosts = [server.host] if server.host else []
    return spec


def _words(exc):
    """Return why no host is valid; empty if Placement or the filters say so."""
    words = exc.kwargs.get("reason", "")
    plain = isinstance(exc, exception.NoValidHost) and "not enough hosts" in words
    return "" if plain else words


@contextlib.contextmanager
def _filters_log():
    """Yield the lines that nova.filters logs, its DEBUG ones included."""
    lines, logger = [], logging.getLogger("nova.filters")
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: lines.append(record.getMessage())
    before, spreads = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = spreads
