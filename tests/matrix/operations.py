# SPDX-License-Identifier: Apache-2.0
"""What is done to the VM of a row, step by step, on either cloud."""

from typing import NamedTuple
from unittest import mock

from nova.tests.functional.api.client import OpenStackApiException
from nova.virt.libvirt import driver

from nova_perfvm.cloud import candidates
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.demand import RequestError
from tests.embedded import ActionFailedError
from tests.matrix.clouds import HOSTS, OTHERS_HOST
from tests.matrix.factors import CREATING

# How Nova words that no host takes a server.
NO_HOST = ("No valid host", "NoValidHost", "Exceeded maximum number of retries")


class Step(NamedTuple):
    """What became of a step.

    :ivar servers: as they are after it
    :ivar why: what Nova says, empty where it did it
    :ivar said: {host: why ``explain`` said that it would not take it, else empty};
        None: nobody asked
    """

    name: str
    servers: tuple
    why: str
    said: dict[str, str] | None = None

    @property
    def done(self):
        return not self.why

    @property
    def unplaced(self):
        """Whether Nova found no host."""
        return any(words in self.why for words in NO_HOST)

    @property
    def expected(self):
        """The hosts that ``explain`` said would take it."""
        return {host for host, why in self.said.items() if not why}

    @property
    def status(self):
        return [server.status for server in self.servers]

    def __str__(self):
        return f"{self.name}: {self.why or [s.host for s in self.servers]}"


class Operations:
    """The steps of a row on a cloud.

    :param cloud: a clouds.Cloud
    :ivar steps: those that were done
    """

    def __init__(self, cloud):
        self.cloud, self.row = cloud, cloud.row
        self.servers = cloud.servers
        self.steps = []
        self._neighbours = []
        self._group = None

    def __call__(self):
        """Yield each Step after it was done, and end where one was refused."""
        self._settle()
        for step in self._all():
            self.steps.append(step)
            yield step
            if not step.done:
                return

    # Who is there before

    def _settle(self):
        row = self.row
        for host in HOSTS[:2] if row.beside == "alike" else ():
            self._neighbours.append(self._neighbour("alike", host))
        if row.beside == "other":
            host = OTHERS_HOST if OTHERS_HOST in self.cloud.hosts else HOSTS[2]
            self._neighbours.append(self._neighbour("other", host))
        if row.group != "none":
            self._group = self._new_group()

    def _neighbour(self, kind, host):
        options = {}
        flavor = self.cloud.flavors[kind]
        if kind == "alike":
            options = self.cloud.source | {"image": self.cloud.image}
        elif flavor.startswith("hp."):
            options = {"from_volume": True}
        server = self.cloud.cloud.boot(flavor, host=host, **options)
        if server.status != "ACTIVE":
            raise AssertionError(f"{flavor} beside it on {host}: {server.fault}")
        return server

    def _new_group(self):
        """Make the group; who is alike and can be in it is in it.

        On the first host for affinity, but then nothing could leave it; on the second
        one for anti-affinity.
        """
        from nova import context, objects

        body = {"name": self.row.group, "policy": self.row.group}
        group = self.cloud.cloud.api.post_server_groups(body)["id"]
        creating = self.row.operation in CREATING
        members = []
        if self.row.beside == "alike" and (creating or self.row.group != "affinity"):
            members = [self._neighbours[self.row.group != "affinity"].id]
        admin = context.get_admin_context()
        objects.InstanceGroup.add_members(admin, group, members)
        return group

    # Steps

    def _all(self):
        operation = self.row.operation
        if operation in CREATING:
            yield getattr(self, f"_{operation.replace(' ', '_')}")()
            return
        if self.row.size == "former":
            # It has its size of the policy before.
            yield self._boot(asked=False, host=HOSTS[0])
            self.cloud.change_policy()
        else:
            yield self._boot(host=HOSTS[0])
        yield from getattr(self, f"_{operation}")(self.steps[0].servers[0])

    def _boot(self, *, name="boot", asked=True, **options):
        given = {"image": self.cloud.image} | self.cloud.source | options
        if self._group:
            given["hints"] = {"group": self._group}
        said = self._explained(options.get("host")) if asked else None
        try:
            found = self.cloud.cloud.boot(self.cloud.flavors["subject"], **given)
        except OpenStackApiException as error:
            return Step(name, (), str(error), said)
        return self._created(name, found, said)

    def _created(self, name, found, said):
        servers = tuple(found) if isinstance(found, list) else (found,)
        faults = [s.fault or s.status for s in servers if s.status != "ACTIVE"]
        return Step(name, servers, "; ".join(faults), said)

    def _several(self):
        return self._boot(name="several", count=2)

    def _at_once(self):
        with_options = {"image": self.cloud.image} | self.cloud.source
        if self._group:
            with_options["hints"] = {"group": self._group}
        said = self._explained(None)
        from tests.embedded import at_once

        def boot(_number):
            return self.cloud.cloud.boot(self.cloud.flavors["subject"], **with_options)

        try:
            return self._created("at once", at_once(boot, [0, 1]), said)
        except OpenStackApiException as error:
            return Step("at once", (), str(error), said)

    def _reschedule(self):
        """Let the first build fail on its host."""
        spawn, failed = driver.LibvirtDriver.spawn, []

        def once(*args, **options):
            if not failed:
                failed.append(True)
                raise RuntimeError("this host fails")
            return spawn(*args, **options)

        with mock.patch.object(driver.LibvirtDriver, "spawn", once):
            return self._boot(name="reschedule")

    def _cold(self, server):
        step = self._step("cold", self.servers.cold_migrate, server)
        yield step
        yield self._step("confirm", self.servers.confirm, server, asked=False)

    def _resize(self, server):
        flavor = self.cloud.flavors["large"]
        yield self._step("resize", self.servers.resize, server, flavor)
        yield self._step("confirm", self.servers.confirm, server, asked=False)

    def _revert(self, server):
        yield self._step("cold", self.servers.cold_migrate, server)
        yield self._step("revert", self.servers.revert, server, asked=False)

    def _live(self, server):
        yield self._step("live", self.servers.live_migrate, server)

    def _evacuate(self, server):
        self.cloud.cloud.fail_host(HOSTS[0], stop=True)
        step = self._step("evacuate", self.servers.evacuate, server)
        self.cloud.cloud.recover_host(HOSTS[0])
        yield step

    def _unshelve(self, server):
        yield self._step("shelve", self.servers.shelve, server, asked=False)
        # nova-compute counts it until its next periodic task.
        self.cloud.cloud.run_periodics()
        yield self._step("unshelve", self.servers.unshelve, server)

    def _rebuild(self, server):
        image = self.cloud.cloud.create_image(**self.cloud._properties())
        step = self._step("rebuild", self.servers.rebuild, server, image, asked=False)
        yield step

    def _step(self, name, method, server, *arguments, asked=True):
        said = None
        if asked:
            resized = arguments[0] if name == "resize" else None
            said = self._explained(None, server=server, flavor=resized)
        try:
            done = method(server, *arguments)
        except OpenStackApiException as error:
            shown = self.servers.show(server)
            return Step(name, (shown,), str(error), said)
        except ActionFailedError as error:
            shown = self.servers.show(server)
            return Step(name, (shown,), error.detail or "failed", said)
        return Step(name, (done,), "", said)

    # What is said before

    def _explained(self, host, *, server=None, flavor=None):
        """Return what ``explain`` says of each host; a move leaves its own."""
        cloud = self.cloud
        if not cloud.ours:
            return None
        seen = cloud.seen()
        asked = (
            {"server": server.id}
            if server and flavor is None
            else {
                "flavor": flavor or cloud.flavors["subject"],
                "image": cloud.image,
                "volume_backed": cloud.source["from_volume"],
                "group": self._group,
            }
        )
        try:
            request, _ = explain.request_of(seen, **asked)
        except RequestError:
            if self.row.numa == "none":
                raise
            # It says that it judges no vCPUs that an image divides by hand.
            return None
        settings = settings_for(cloud.policy)
        offered = candidates.offered(cloud.api, request, settings, seen.aggregates)
        found = explain.explain(
            cloud.policy, seen, request, settings, host=host, offered=offered
        )
        own = self._host_of(server)
        return {v.view.name: v.code for v in found.verdicts if v.view.name != own}

    def _host_of(self, server):
        return self.servers.show(server).host if server else None
