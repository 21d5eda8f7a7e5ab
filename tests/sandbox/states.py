# SPDX-License-Identifier: Apache-2.0
"""Random states of a cloud, and requests to put to it."""

from typing import NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.placement.candidates import DISABLED
from nova_perfvm.placement.schemes import units
from tests.processes import content, waiting

NO_ZONE = ""
ELSEWHERE = "elsewhere"
PLAIN = "agreement-plain"
# A tenant's, that asks for hosts of the policy.
OPENING = "agreement-opening"
# Projects that nobody has made: Nova does not ask for them.
PROJECT, STRANGER = "agreement-project", "agreement-stranger"
_SECONDS = 240
_MOST_SERVERS = 6
_MOST_CHANGES = 3
_CLASS = {const.CLASS_KEY: "high-performance"}
_PINNED = {const.CPU_POLICY: "dedicated"}
# Multiqueue is the image's.
HIGH = _CLASS | _PINNED | {const.NUMA_NODES: "1"}
# vCPUs, memory in GiB and extra specs.
_FLAVORS = {
    "a-ten": (10, 1, HIGH),
    "a-isolate": (20, 1, HIGH | {const.CPU_THREAD_POLICY: "isolate"}),
    "a-emulator": (20, 1, HIGH | {const.EMULATOR_THREADS: "isolate"}),
    "a-spread": (20, 1, HIGH | {const.NUMA_NODES: "2"}),
    "a-floating": (20, 1, _CLASS),
    "a-unknown": (1, 1, {const.CLASS_KEY: "fast"}),
    "a-own": (4, 1, _PINNED),
    "a-plain": (2, 1, {}),
    "a-groups": (
        *(1, 1),
        {
            "resources1:MEMORY_MB": "64",
            "resources2:MEMORY_MB": "64",
            "group_policy": "isolate",
        },
    ),
    "a-trait": (1, 1, {f"trait:{const.TRAIT_HIGH_PERFORMANCE}": "required"}),
    "a-slot": (20, 1, HIGH | {f"resources:{const.RC_SLOT}": "1"}),
}


class Asked(NamedTuple):
    """A server that is asked for."""

    flavor: str
    image: str
    zone: str
    project: str


class States:
    """Changes a cloud at random, so that all can be undone.

    :cvar odd: flavors that no policy generates: vCPUs, memory in GiB and extra specs
    :cvar boots: how many of the ways to change it boot a server; seven do something
        else
    :cvar often: odd flavors that are asked for twice as often
    :ivar images: by name, as Nova hands them on
    """

    odd = _FLAVORS
    # Only hosts that share CPUs refuse a server for its groups.
    often = ("a-groups",)
    boots = 4

    def __init__(self, sandbox, api, policy, rng):
        self._api = api
        self._random = rng
        self._image_api = sandbox.connect().image
        self._compute = sandbox.connect().compute
        self._trait = (
            units.UNITS.enrolled_trait(policy)
            if policy.placement == "units"
            else const.TRAIT_HIGH_PERFORMANCE
        )
        # Where Placement's layer is off, nobody has made it.
        for name in (self._trait, const.TRAIT_HIGH_PERFORMANCE):
            api.placement("PUT", f"/traits/{name}")
        # nova-scheduler fails on resource classes that Placement does not know.
        api.placement("PUT", f"/resource_classes/{const.RC_SLOT}")
        known = api.placement("GET", "/resource_providers", key="resource_providers")
        names = {provider["name"] for provider in known}
        self._hosts = [
            host.name for host in sandbox.settings.pretended if host.name in names
        ]
        self._servers = {}
        self._undo = []
        # What traits and inventories were at first, as the oldest change is undone
        # first, and a compute puts back what provider.yaml says.
        self._first = {}
        self._made = []
        self.images = {}
        (high, *_) = (
            flavor.extra_specs
            for flavor in generate_flavors(policy)
            if flavor.class_name == _CLASS[const.CLASS_KEY]
        )
        unclaimed = {k: v for k, v in high.items() if not k.startswith("resources")}
        single = {k: v for k, v in high.items() if k != const.VIF_MULTIQUEUE}
        self.odd = self.odd | {
            # Placement lets it in wherever the policy's VMs go, without their amounts.
            "a-open": (2, 1, {f"trait:{self._trait}": "required"}),
            # They lack nothing of their class, and have memory for no host or few.
            "a-large": (20, 300, high),
            "a-half": (20, 150, high),
            "a-unclaimed": (20, 1, unclaimed),
            # Multiqueue is then the image's, and one image has none.
            "a-single": (20, 1, single),
        }
        for name, (vcpus, memory_gb, specs) in self.odd.items():
            self._flavor(name, vcpus, memory_gb * 1024, specs)
        flavors = api.nova("GET", "/flavors/detail", key="flavors")
        self._flavors = {found["name"]: found["id"] for found in flavors}
        # Dealt, not drawn: what comes seldom would not come in some runs.
        self._deck = self._dealt([*sorted(self.odd), *self.often])
        images = [*[PLAIN] * 2, *[OPENING] * 2, *[content.IMAGE] * 10]
        self._images = self._dealt(images)
        self._classes = self._dealt(["high-performance", "general", "fast"])
        self._ways = self._dealt(
            [
                *[self._boot] * self.boots,
                self._disable,
                self._force_down,
                self._label,
                self._lend,
                self._change_trait,
                self._change_inventory,
                self._change_inventory,
            ]
        )
        self._ours = [name for name in self._flavors if name not in self.odd]
        stored = {c.name for c in policy.classes if c.disk.source == "volume"}
        self._bootable = [
            found["name"]
            for found in flavors
            if found["name"] in self._ours
            and found["extra_specs"].get(const.CLASS_KEY) not in stored
        ]
        self._zone(ELSEWHERE, self._hosts[0])
        self._image(PLAIN)
        self._image(OPENING, **{f"trait:{self._trait}": "required"})
        for image in api.images():
            properties = {
                k: v for k, v in image.items() if k.startswith(("hw_", "trait:"))
            }
            self.images[image["name"]] = {"id": image["id"], "properties": properties}

    def change(self):
        """Make a change; say which."""
        if len(self._undo) >= _MOST_CHANGES or (
            self._undo and self._random.random() < 0.25
        ):
            self._undo.pop(0)()
            return "undone"
        if self._servers and self._random.random() < 0.15:
            return self._delete(self._random.choice(list(self._servers)))
        if len(self._servers) >= _MOST_SERVERS:
            return self._delete(next(iter(self._servers)))
        return next(self._ways)()

    def requests(self):
        """Return what is asked for."""
        rng = self._random
        return [
            Asked(
                name,
                next(self._images),
                ELSEWHERE if rng.random() < 0.07 else NO_ZONE,
                PROJECT if rng.random() < 0.15 else STRANGER,
            )
            for name in self._names()
        ]

    def _names(self):
        return [self._random.choice(self._ours), next(self._deck)]

    def _dealt(self, cards):
        """Return each once before any comes again."""
        while True:
            yield from self._random.sample(cards, len(cards))

    def undo(self):
        """Undo all."""
        while self._undo:
            self._undo.pop(0)()
        for server in list(self._servers):
            self._delete(server)
        for undo in self._made:
            undo()
        for host in self._hosts:
            # One that was enabled while it was forced down was not told.
            path = f"{self._provider(host)}/traits"
            if DISABLED in self._api.placement("GET", path)["traits"]:
                self._service(host, status="disabled")
                self._service(host, status="enabled")

    def _flavor(self, name, vcpus, memory_mb, specs):
        body = {"name": name, "vcpus": vcpus, "ram": memory_mb, "disk": 1}
        made = self._api.nova("POST", "/flavors", {"flavor": body}, "flavor")["id"]
        if specs:
            path = f"/flavors/{made}/os-extra_specs"
            # Before 2.86 nova-api takes whatever an operator writes.
            self._compute.post(path, json={"extra_specs": specs}, microversion="2.61")
        self._made.append(lambda: self._api.nova("DELETE", f"/flavors/{made}"))

    def _image(self, name, **properties):
        body = {"name": name, "disk_format": "raw", "container_format": "bare"}
        made = self._image_api.post("/images", json=body | properties).json()["id"]
        self._made.append(lambda: self._image_api.delete(f"/images/{made}"))

    def _boot(self):
        flavor = self._random.choice(self._bootable)
        body = {
            "name": flavor,
            "flavorRef": self._flavors[flavor],
            "imageRef": self.images[content.IMAGE]["id"],
            "networks": "none",
        }
        made = self._api.nova("POST", "/servers", {"server": body}, "server")["id"]
        self._servers[made] = None
        waiting.until(
            lambda: self._show(made)["status"] in {"ACTIVE", "ERROR"}, made, _SECONDS
        )
        shown = self._show(made)
        host = self._servers[made] = shown["OS-EXT-SRV-ATTR:host"]
        if host is None:
            self._delete(made)
        return f"{flavor} booted: {shown['status']} on {host}"

    def _show(self, server):
        return self._api.nova("GET", f"/servers/{server}", key="server")

    def _delete(self, server):
        self._servers.pop(server)
        self._api.nova("DELETE", f"/servers/{server}")

        def gone():
            found = self._api.nova("GET", "/servers?all_tenants=1", key="servers")
            return server not in {each["id"] for each in found}

        waiting.until(gone, server, _SECONDS)
        return "deleted"

    def _host(self):
        return self._random.choice(self._hosts)

    def _service(self, host, **changes):
        path = "/os-services?binary=nova-compute"
        services = self._api.nova("GET", path, key="services")
        (found,) = [service for service in services if service["host"] == host]
        self._api.nova("PUT", f"/os-services/{found['id']}", changes)

    def _disable(self):
        host = self._host()
        self._service(host, status="disabled")
        self._undo.append(lambda: self._service(host, status="enabled"))
        return f"{host} disabled"

    def _force_down(self):
        host = self._host()
        self._service(host, forced_down=True)
        self._undo.append(lambda: self._service(host, forced_down=False))
        return f"{host} forced down"

    def _label(self):
        host = self._host()
        name = next(self._classes)
        _, undo = self._aggregate(host, {const.CLASS_KEY: name})
        self._undo.append(undo)
        return f"{host} labelled {name}"

    def _lend(self):
        host = self._host()
        _, undo = self._aggregate(host, {"filter_tenant_id": PROJECT})
        self._undo.append(undo)
        return f"{host} lent to a project"

    def _zone(self, name, host):
        _, undo = self._aggregate(host, {"availability_zone": name})
        self._made.append(undo)

    def _aggregate(self, host, metadata):
        """Make an aggregate of one host; return it, and what takes it away."""
        body = {"aggregate": {"name": f"agreement-{self._random.random()}"}}
        made = self._api.nova("POST", "/os-aggregates", body, "aggregate")["id"]

        def undo():
            self._act(made, remove_host={"host": host})
            self._api.nova("DELETE", f"/os-aggregates/{made}")

        if metadata:
            self._act(made, set_metadata={"metadata": metadata})
        self._act(made, add_host={"host": host})
        return made, undo

    def _act(self, aggregate, **action):
        self._api.nova("POST", f"/os-aggregates/{aggregate}/action", action)

    def _provider(self, host):
        path = f"/resource_providers?name={host}"
        (found,) = self._api.placement("GET", path, key="resource_providers")
        return f"/resource_providers/{found['uuid']}"

    def _put(self, path, **body):
        found = self._api.placement("GET", path)
        generation = found["resource_provider_generation"]
        body["resource_provider_generation"] = generation
        self._api.placement("PUT", path, body)

    def _change_trait(self):
        host = self._host()
        path = f"{self._provider(host)}/traits"
        trait = {const.TRAIT_HIGH_PERFORMANCE}
        before = self._api.placement("GET", path)["traits"]
        there = const.TRAIT_HIGH_PERFORMANCE in before
        first = self._first.setdefault(path, there)

        def give(wanted):
            # Others may have been added meanwhile, such as that of disabled ones.
            now = set(self._api.placement("GET", path)["traits"])
            self._put(path, traits=sorted(now | trait if wanted else now - trait))

        give(not there)
        self._undo.append(lambda: give(first))
        return f"{host} {'without' if there else 'with'} the trait"

    def _change_inventory(self):
        host = self._host()
        path = f"{self._provider(host)}/inventories"
        before = self._api.placement("GET", path)["inventories"]
        name = self._random.choice(sorted(before))
        kept = before[name]
        reserved = self._random.choice([kept["total"], kept["total"] // 2])
        first = self._first.setdefault((path, name), kept["reserved"])

        def reserve(amount):
            found = self._api.placement("GET", path)["inventories"]
            found[name] = kept | {"reserved": amount}
            self._put(path, inventories=found)

        reserve(reserved)
        self._undo.append(lambda: reserve(first))
        return f"{reserved} {name} of {host} reserved"
