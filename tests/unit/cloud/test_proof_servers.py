# SPDX-License-Identifier: Apache-2.0
"""What a proof makes is deleted, wherever it was broken off, and nothing else."""

import base64
import itertools

import testtools

from nova_perfvm.cloud import proof_servers
from nova_perfvm.cloud.errors import CloudError, ConflictError, NotThereError
from nova_perfvm.cloud.proof_servers import WantedServers

PROOF, OTHER = "0123abcd", "4567cdef"
WANTED = WantedServers(
    proof=PROOF,
    host="cmp7",
    flavor="f1",
    image="i1",
    count=2,
    network="n1",
    public_key="ssh-ed25519 AAAA",
    user_data="#cloud-config\n",
    volume_gb=20,
    volume_type="nvme-tcp",
    floating_network="public",
)


class Cloud:
    """Makes and deletes things; a volume stays while a server has it.

    :ivar things: {collection: [thing]}
    :ivar fails_after: the number of the request that is broken off, once it is done
    """

    def __init__(self, fails_after=None, error=KeyboardInterrupt):
        self.things = {}
        self.fails_after, self.error = fails_after, error
        self.made = itertools.count(1)
        self.host = WANTED.host

    def project(self):
        return "mine"

    def has(self, collection):
        return self.things.get(collection, [])

    def nova(self, method, path, body=None, key=""):
        collection, _, rest = path.lstrip("/").partition("?")[0].partition("/")
        name, _, action = rest.partition("/")
        if method == "POST" and not action:
            return self._make(collection, body)
        if action:
            assert body == {"forceDelete": None}, body
            method = "DELETE"
        if method == "DELETE":
            return self._delete(collection, name)
        if collection == "os-keypairs":
            return [{"keypair": one} for one in self.has(collection)]
        if collection == "ports":
            return [{"id": "port"}]
        if not name:
            return self.has(collection)
        return next(one for one in self.has(collection) if one["id"] == name)

    neutron = cinder = nova

    def nova_list(self, path, key):
        return iter(self.has(path.split("/")[1]))

    cinder_list = nova_list

    def _make(self, collection, body):
        ((kind, asked),) = body.items()
        number = next(self.made)
        thing = asked | {"id": f"{kind}{number}"}
        if kind == "server":
            thing |= {
                "status": "ACTIVE",
                "OS-EXT-SRV-ATTR:host": self.host,
                "flavor": {"original_name": "hp.20c.64g"},
                "addresses": {"net": [{"addr": f"192.0.2.{number}"}]},
            }
        elif kind == "volume":
            thing["status"] = "available"
        elif kind == "floatingip":
            thing["floating_ip_address"] = f"203.0.113.{number}"
        if kind != "security_group_rule":
            self.things.setdefault(collection, []).append(thing)
        if number == self.fails_after:
            raise self.error
        return thing

    def _delete(self, collection, name):
        for one in self.has(collection):
            if name in {one["id"], one["name"] if collection == "os-keypairs" else ""}:
                break
        else:
            raise NotThereError("gone", 404)
        if collection == "volumes" and any(
            one["block_device_mapping_v2"][0]["uuid"] == name
            for one in self.has("servers")
        ):
            raise ConflictError("in use", 409)
        self.things[collection].remove(one)

    def left(self):
        return sorted(one["id"] for found in self.things.values() for one in found)


class ProofServersTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(proof_servers, "_PAUSE_S", 0.001)
        self.patch(proof_servers, "_GONE_S", 0.05)

    def test_what_is_made(self):
        cloud = Cloud()
        found = list(proof_servers.create(cloud, WANTED, lambda _text: None))
        self.assertEqual(
            ["perfvm-proof-0123abcd-1", "perfvm-proof-0123abcd-2"],
            [one.name for one in found],
        )
        self.assertTrue(all(one.address.startswith("203.0.113.") for one in found))
        (server, _) = cloud.has("servers")
        self.assertEqual("cmp7", server["host"])
        self.assertNotIn("imageRef", server)
        self.assertEqual(b"#cloud-config\n", base64.b64decode(server["user_data"]))
        volumes = {(v["volume_type"], v["imageRef"]) for v in cloud.has("volumes")}
        self.assertEqual({("nvme-tcp", "i1")}, volumes)

    def test_wherever_it_ends_nothing_stays(self):
        whole = Cloud()
        list(proof_servers.create(whole, WANTED, lambda _text: None))
        requests = next(whole.made) - 1
        self.assertGreater(requests, 9)
        for number in range(1, requests + 1):
            for error in (KeyboardInterrupt, CloudError("no answer")):
                cloud = Cloud(number, error)
                self.assertRaises(
                    (KeyboardInterrupt, CloudError),
                    lambda cloud=cloud: list(
                        proof_servers.create(cloud, WANTED, lambda _text: None)
                    ),
                )
                self.assertNotEqual([], cloud.left(), number)
                proof_servers.delete(cloud, PROOF, lambda _text: None)
                self.assertEqual([], cloud.left(), number)
                self.assertEqual([], proof_servers.left(cloud))

    def test_what_others_made_stays(self):
        cloud = Cloud()
        cloud.things = {
            "servers": [
                {"id": "s", "name": f"perfvm-proof-{PROOF}", "description": None}
            ],
            "os-keypairs": [{"id": "k", "name": "perfvm-proof-mine"}],
            "security-groups": [{"id": "g", "name": "default", "description": "x"}],
            "volumes": [
                {"id": "v", "name": "v", "description": f"perfvm-proof-{OTHER}"}
            ],
        }
        proof_servers.delete(cloud, PROOF, lambda _text: None)
        self.assertEqual(["g", "k", "s", "v"], cloud.left())
        self.assertEqual(["volume v"], proof_servers.left(cloud))

        # Of all proofs; the server that is no proof's has no volume.
        cloud.things["servers"] = []
        proof_servers.delete(cloud, None, lambda _text: None)
        self.assertEqual(["g", "k"], cloud.left())

    def test_what_stays_is_named_and_the_rest_deleted(self):
        cloud = Cloud()
        list(proof_servers.create(cloud, WANTED, lambda _text: None))
        cloud._delete, delete = (
            (
                lambda collection, name: (
                    collection == "servers" or delete(collection, name)
                )
            ),
            cloud._delete,
        )
        error = self.assertRaises(
            CloudError, proof_servers.delete, cloud, PROOF, lambda _text: None
        )
        self.assertIn("server perfvm-proof-0123abcd-1 is still there", str(error))
        self.assertIn("in use", str(error))
        self.assertIn("prove --clean", str(error))
        self.assertEqual([], cloud.has("security-groups"))

    def test_a_server_elsewhere(self):
        cloud = Cloud()
        cloud.host = "cmp8"
        error = self.assertRaises(
            CloudError,
            lambda: list(proof_servers.create(cloud, WANTED, lambda _text: None)),
        )
        self.assertIn("on cmp8", str(error))

    def said(self, broken):
        """Return the error if what is made is changed.

        :param broken: changes what was made of a collection
        """
        cloud = Cloud()
        made = cloud._make

        def made_broken(collection, body):
            thing = made(collection, body)
            broken(collection, thing)
            return thing

        cloud._make = made_broken
        error = self.assertRaises(
            CloudError,
            lambda: list(proof_servers.create(cloud, WANTED, lambda _text: None)),
        )
        return str(error)

    def test_a_server_in_error(self):
        def broken(collection, thing):
            if collection == "servers":
                fault = {"message": "No valid host was found. "}
                thing |= {"status": "ERROR", "fault": fault}

        said = self.said(broken)
        self.assertIn("No valid host was found", said)
        self.assertIn("openstack perfvm explain", said)

    def test_a_volume_in_error(self):
        def broken(collection, thing):
            if collection == "volumes":
                thing["status"] = "error"

        said = self.said(broken)
        self.assertIn("volume perfvm-proof-0123abcd-1 is in error", said)
        self.assertIn("volume message list", said)

    def test_no_such_volume_type(self):
        def broken(collection, _thing):
            if collection == "volumes":
                raise NotThereError("Volume type nvme-tcp could not be found.", 404)

        said = self.said(broken)
        self.assertIn("not be found. openstack volume type create nvme-tcp", said)
