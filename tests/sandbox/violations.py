# SPDX-License-Identifier: Apache-2.0
"""Violations planted in a real cloud, as operators and accidents plant them."""

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud.api import API
from tests.sandbox import large
from tests.sandbox.base import HP

STRANGER = "11111111-1111-4111-8111-111111111111"
CLASS = {const.CLASS_KEY: "high-performance"}
PINNED = {const.CPU_POLICY: "dedicated"}
# What nobody would make who reads the policy: vCPUs and extra specs.
FLAVORS = {
    "ten": (10, CLASS | PINNED),
    "slow": (10, CLASS | PINNED | {const.CPU_THREAD_POLICY: "isolate"}),
    "spread": (20, CLASS | PINNED | {const.NUMA_NODES: "2"}),
    "own": (4, PINNED),
    "floating": (20, CLASS),
    "unknown": (1, {const.CLASS_KEY: "fast"}),
    "near": (1, {"prefvm:class": "high-performance"}),
}
PLACES = (
    *(("ten", "dedicated1"),) * 3,
    ("slow", "dedicated1"),
    ("spread", "dedicated2"),
    ("own", "dedicated2"),
    ("floating", "shared1"),
    ("near", "shared1"),
    ("unknown", "shared1"),
)
PLAIN, CONFLICT = "plain", "conflict"


class Violations:
    """Plants them, says what each is, and takes them away.

    :ivar expected: code and subject of what an audit should find
    """

    def __init__(self, test):
        self._test = test
        self._connection = test.sandbox.connect()
        self._api = API(self._connection)
        self._providers = {
            found["name"]: found["uuid"]
            for found in self._api.placement(
                "GET", "/resource_providers", key="resource_providers"
            )
        }
        self._copies = large.Copies(test.sandbox)
        self._undo = [self._copies.remove]
        self.expected = set()

    def undo(self):
        """Take them away; the servers are the test's."""
        while self._undo:
            self._undo.pop()()

    def plant(self, high, general):
        """Plant all.

        :param high: a server of the high-performance class on dedicated3
        :param general: one of the general class on shared2
        """
        servers = self._strangers()
        self._copies.make(high["id"], ["dedicated3"])
        for code, host in (
            (codes.TOO_MANY_ON_HOST, "dedicated1"),
            (codes.TOO_MANY_ON_CELL, "dedicated1"),
            (codes.CLASSES_MIXED, "dedicated2"),
            (codes.PINS_OVERLAP, "dedicated3"),
        ):
            self.expected.add((code, host))
        for code, flavor in (
            ("audit.wrong_size", "ten"),
            # Its thread policy and its queues are in the same finding.
            ("audit.wrong_size", "slow"),
            (codes.NOT_IN_ONE_CELL, "spread"),
            ("audit.classless_pinned", "own"),
            (codes.NOT_PINNED, "floating"),
            (codes.CLASS_UNKNOWN, "unknown"),
            (codes.NEAR_MISS, "near"),
        ):
            self.expected.add((code, _text(servers[flavor])))
        self._flavor_and_image(high)
        self._aggregates(general)
        self._placement(servers)

    def _strangers(self):
        """Boot what the scheduler lets pass without this project's filter."""
        for name, (vcpus, specs) in FLAVORS.items():
            self._flavor(name, vcpus, specs)
        self._image(PLAIN, {})
        self.expected |= {
            (codes.CLASS_UNKNOWN, "flavor unknown"),
            (codes.NEAR_MISS, "flavor near"),
        }
        with self._test.without_filter():
            asked = {}
            for flavor, host in PLACES:
                asked[flavor] = self._test.create(flavor, host, PLAIN)
            for server in asked.values():
                self._test.settled(server)
        found = {flavor: self._test.show(server) for flavor, server in asked.items()}
        for server in found.values():
            self._test.assertEqual("ACTIVE", server["status"], server.get("fault"))
        return found

    def _flavor(self, name, vcpus, specs):
        body = {"name": name, "vcpus": vcpus, "ram": 1024, "disk": 1}
        made = self._api.nova("POST", "/flavors", {"flavor": body}, "flavor")
        path = f"/flavors/{made['id']}"
        self._undo.append(lambda: self._api.nova("DELETE", path))
        self._api.nova("POST", f"{path}/os-extra_specs", {"extra_specs": specs})

    def _image(self, name, properties):
        image = self._connection.image
        body = {"name": name, "disk_format": "raw", "container_format": "bare"}
        made = image.post("/images", json=body | properties).json()["id"]
        image.put(
            f"/images/{made}/file",
            data=bytes(4096),
            headers={"Content-Type": "application/octet-stream"},
        )
        self._undo.append(lambda: image.delete(f"/images/{made}"))

    def _flavor_and_image(self, high):
        """Change a flavor that a server has; let an image say the contrary."""
        flavor = self._connection.compute.find_flavor(HP).id
        path = f"/flavors/{flavor}/os-extra_specs"
        key = const.EMULATOR_THREADS
        self._api.nova("POST", path, {"extra_specs": {key: "share"}})
        self._undo.append(lambda: self._api.nova("DELETE", f"{path}/{key}"))
        self._image(CONFLICT, {const.IMAGE_VIF_MULTIQUEUE: "false"})
        self.expected |= {
            (codes.FLAVOR_CHANGED, _text(high)),
            (codes.FLAVOR_DIFFERS, f"flavor {HP}"),
            (codes.IMAGE_CONFLICT, f"image {CONFLICT}"),
        }

    def _aggregates(self, general):
        for host, name in (("shared2", "high-performance"), ("shared3", "fast")):
            body = {"aggregate": {"name": f"{host}-{name}"}}
            made = self._api.nova("POST", "/os-aggregates", body, "aggregate")["id"]
            path = f"/os-aggregates/{made}"
            metadata = {"set_metadata": {"metadata": {const.CLASS_KEY: name}}}
            for action in (metadata, {"add_host": {"host": host}}):
                self._api.nova("POST", f"{path}/action", action)

            def undo(path=path, host=host):
                self._api.nova(
                    "POST", f"{path}/action", {"remove_host": {"host": host}}
                )
                self._api.nova("DELETE", path)

            self._undo.append(undo)
        self.expected |= {
            ("audit.host_reserved", _text(general)),
            (codes.LABEL_UNKNOWN, "shared3"),
        }

    def _placement(self, servers):
        """Change Placement last: nova-compute mends some of it in time."""
        near, unknown = servers["near"]["id"], servers["unknown"]["id"]
        self._api.placement("DELETE", f"/allocations/{near}")
        held = self._api.placement("GET", f"/allocations/{unknown}")
        taken = {"resources": {"VCPU": 1}}
        held["allocations"][self._providers["shared3"]] = taken
        self._api.placement("PUT", f"/allocations/{unknown}", held)
        leaked = {
            "allocations": {self._providers["shared3"]: taken},
            "project_id": STRANGER,
            "user_id": STRANGER,
            "consumer_generation": None,
        }
        self._api.placement("PUT", f"/allocations/{STRANGER}", leaked)
        self._undo.append(
            lambda: self._api.placement("DELETE", f"/allocations/{STRANGER}")
        )
        child, old = "shared3_perfvm_a", "old1"
        self._provider(child, self._providers["shared3"])
        self._inventory(self._provider(old), "VCPU", 4)
        self._inventory(self._providers["dedicated1"], const.RC_SLOT, 5)
        self._inventory(self._providers["shared1"], "VCPU", 1)
        self._without_trait(self._providers["dedicated2"])
        self.expected |= {
            (codes.ALLOCATION_MISSING, _text(servers["near"])),
            (codes.ALLOCATION_ELSEWHERE, _text(servers["unknown"])),
            (codes.LEAKED_ALLOCATION, STRANGER),
            (codes.ORPHANED_CHILD, child),
            (codes.ORPHANED_PROVIDER, old),
            (codes.INVENTORY_DIFFERS, "dedicated1"),
            (codes.OVER_INVENTORY, "shared1"),
            (codes.TRAIT_DIFFERS, "dedicated2"),
        }

    def _provider(self, name, parent=None):
        body = {"name": name, "parent_provider_uuid": parent}
        made = self._api.placement("POST", "/resource_providers", body)["uuid"]
        path = f"/resource_providers/{made}"
        self._undo.append(lambda: self._api.placement("DELETE", path))
        return made

    def _inventory(self, provider, resource_class, total):
        path = f"/resource_providers/{provider}/inventories"
        before = self._api.placement("GET", path)["inventories"]
        changed = before.get(resource_class, {"max_unit": total}) | {"total": total}
        self._put(path, inventories=before | {resource_class: changed})
        self._undo.append(lambda: self._put(path, inventories=before))

    def _without_trait(self, provider):
        path = f"/resource_providers/{provider}/traits"
        before = self._api.placement("GET", path)["traits"]
        kept = [name for name in before if name != const.TRAIT_HIGH_PERFORMANCE]
        self._put(path, traits=kept)
        self._undo.append(lambda: self._put(path, traits=before))

    def _put(self, path, **body):
        found = self._api.placement("GET", path)
        generation = found["resource_provider_generation"]
        body["resource_provider_generation"] = generation
        self._api.placement("PUT", path, body)


def _text(server):
    return f"{server['name']} ({server['id']})"
