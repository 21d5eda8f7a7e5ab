# SPDX-License-Identifier: Apache-2.0
"""What is done to the VM of a row, step by step, on either cloud."""

import dataclasses
from typing import NamedTuple
from unittest import mock

from nova import context, objects
from nova.tests.functional.api.client import OpenStackApiException
from nova.virt.libvirt import driver

from nova_perfvm.cloud import candidates
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.demand import RequestError
from tests.embedded import ActionFailedError, at_once
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
    def statuses(self):
        return {server.status for server in self.servers}

    def __str__(self):
        return f"{self.name}: {self.why or [s.host for s in self.servers]}"


class Operations:
    """The steps of a row on a clouds.Cloud.

    :ivar steps: those that were done
    """

    def __init__(self, cloud):
        self.cloud, self.row, self.nova = cloud, cloud.row, cloud.cloud
        self.servers = cloud.servers
        self.steps = []
        apart = OTHERS_HOST in cloud.hosts
        self._others_host = OTHERS_HOST if apart else HOSTS[2]
        self._group = None

    def __call__(self):
        """Yield each Step after it was done, and end where one was refused."""
        self._settle()
        for step in self._all():
            self.steps.append(step)
            yield step
            if not step.done:
                return

    def _settle(self):
        """Boot those that are there before, and put them into the server group.

        One is in it on the first host for affinity, but then nothing could leave it;
        on the second one for anti-affinity.
        """
        row, creating = self.row, self.row.operation in CREATING
        alike = HOSTS[:2] if row.beside == "alike" else ()
        alike = [self._neighbour("alike", host, **self.cloud.source) for host in alike]
        if row.beside == "other":
            self._neighbour("other", self._others_host, from_volume=not row.pinned)
        if row.group == "none":
            return
        body = {"name": row.group, "policy": row.group}
        self._group = self.nova.api.post_server_groups(body)["id"]
        members = {"anti-affinity": alike[1:], "affinity": alike[:1] * creating}
        objects.InstanceGroup.add_members(
            context.get_admin_context(), self._group, members[row.group]
        )

    def _neighbour(self, kind, host, **options):
        flavor = self.cloud.flavors[kind]
        server = self.nova.boot(flavor, host=host, **options)
        if server.status != "ACTIVE":
            why = f"{server.fault}\n{server.traceback}"
            raise AssertionError(f"{flavor} does not boot on {host}: {why}")
        return server.id

    def _all(self):
        """Yield each step as it is done."""
        row = self.row
        first = {} if row.operation in CREATING else {"host": HOSTS[0]}
        if row.operation == "several":
            first = {"count": 2}
        if row.operation == "forced":
            first = {"az": f"nova:{self._empty_host()}", "count": 2}
        failing = row.operation == "reschedule"
        with mock.patch.object(driver.LibvirtDriver, "spawn", _spawn(failing=failing)):
            yield self._boot(twice=row.operation == "at once", **first)
        if row.size == "former":
            self.cloud.change_policy()
        if row.operation not in CREATING:
            yield from getattr(self, f"_{row.operation}")(self.steps[0].servers[0])

    def _empty_host(self):
        """Return a host that nobody is on before."""
        taken = self.row.beside == "other" and self._others_host == HOSTS[2]
        return HOSTS[1] if taken else HOSTS[2]

    def _boot(self, *, twice, **options):
        options |= self.cloud.source | {"image": self.cloud.image}
        if self._group:
            options["hints"] = {"group": self._group}
        # Whom filters are not asked about, and what the policy was before.
        told = self.row.size == "former" or "az" in options
        said = None if told else self._explained(options.get("host"))
        try:
            found = self._create(2 if twice else 1, options)
        except OpenStackApiException as error:
            return Step("boot", (), str(error), said)
        faults = [s.fault or s.status for s in found if s.status != "ACTIVE"]
        creating = self.row.operation in CREATING
        name = self.row.operation if creating else "boot"
        return Step(name, tuple(found), "; ".join(faults), said)

    def _create(self, requests, options):
        def boot(_number):
            return self.nova.boot(self.cloud.flavors["subject"], **options)

        found = at_once(boot, range(requests))
        return found[0] if isinstance(found[0], list) else found

    def _cold(self, server):
        yield self._step("cold", self.servers.cold_migrate, server)
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
        self.nova.fail_host(HOSTS[0], stop=True)
        step = self._step("evacuate", self.servers.evacuate, server)
        self.nova.recover_host(HOSTS[0])
        yield step

    def _unshelve(self, server):
        yield self._step("shelve", self.servers.shelve, server, asked=False)
        # nova-compute counts it until its next periodic task.
        self.nova.run_periodics()
        yield self._step("unshelve", self.servers.unshelve, server)

    def _rebuild(self, server):
        image = self.nova.create_image(**self.cloud.properties)
        yield self._step("rebuild", self.servers.rebuild, server, image, asked=False)

    def _step(self, name, method, server, *arguments, asked=True):
        said = None
        if asked:
            flavor = arguments[0] if name == "resize" else None
            said = self._explained(None, server=server, flavor=flavor)
        try:
            return Step(name, (method(server, *arguments),), "", said)
        except (OpenStackApiException, ActionFailedError) as error:
            return Step(name, (self.servers.show(server),), str(error), said)

    def _explained(self, host, *, server=None, flavor=None):
        """Return what ``explain`` says of each host; a move leaves its own."""
        cloud, own = self.cloud, server and self.servers.show(server).host
        if not cloud.ours:
            return None
        seen = cloud.seen()
        asked = {
            "flavor": flavor or cloud.flavors["subject"],
            "image": cloud.image,
            "volume_backed": cloud.source["from_volume"],
            "group": self._group,
        }
        if server and not flavor:
            asked = {"server": server.id}
        try:
            request, _ = explain.request_of(seen, **asked)
        except RequestError:
            if self.row.numa == "none":
                raise
            # It says that it judges no vCPUs that an image divides by hand.
            return None
        settings = settings_for(cloud.policy)
        settings = dataclasses.replace(settings, fallback=cloud.falls_back)
        offered = candidates.offered(cloud.api, request, settings, seen.aggregates)
        found = explain.explain(
            cloud.policy, seen, request, settings, host=host, offered=offered
        )
        return {v.view.name: v.code for v in found.verdicts if v.view.name != own}


def _spawn(*, failing):
    """Return what builds guests, but for the first one if it is to fail."""
    original, failed = driver.LibvirtDriver.spawn, []

    def spawn(*args, **options):
        if failing and not failed:
            failed.append(True)
            raise RuntimeError("this host builds nothing")
        return original(*args, **options)

    return spawn
