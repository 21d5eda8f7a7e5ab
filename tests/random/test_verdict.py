# SPDX-License-Identifier: Apache-2.0
"""The judge of random operations finds what is wrong."""

from tests.functional import base
from tests.operations import cells, clouds, verdict

STRANGER = "11111111-1111-4111-8111-111111111111"


class TestVerdict(clouds.SlotsCloud):
    """What it says of a cloud in which something is wrong."""

    FILTER = False
    HOSTS = clouds.SlotsCloud.HOSTS[:1]

    def setUp(self):
        super().setUp()
        self.judge = verdict.Judge(self.cloud, self.hosts, self.CHILDREN)

    def complaints(self, most=2, sizes=None):
        self.judge.look()
        return [
            *self.judge.guest_complaints(most, sizes or {20: 1}, set()),
            *self.judge.book_complaints(set()),
        ]

    def assert_complaint(self, words, **options):
        (found,) = self.complaints(**options)
        self.assertIn(words, found)

    def test_it_finds_what_is_wrong(self):
        server = self.boot(base.HP_64)
        self.assertEqual([], self.complaints())
        self.assert_complaint("1 high-performance guests", most=0)
        self.assert_complaint("owns 20 CPUs", sizes={18: 1})

        path = f"/allocations/{server.id}"
        held = self.api.placement("GET", path)["allocations"]
        (provider,) = held
        stranger = {
            "allocations": {provider: {"resources": {"PCPU": 1}}},
            "project_id": STRANGER,
            "user_id": STRANGER,
            "consumer_generation": None,
        }
        self.api.placement("PUT", f"/allocations/{STRANGER}", stranger)
        self.assert_complaint(f"{STRANGER} is nobody")
        self.api.placement("DELETE", f"/allocations/{STRANGER}")

        self.cloud.create_flavor("hp.bare", 20, 65536, 0, base.CLAIMS_HP)
        bare = self.boot("hp.bare")
        self.assert_complaint("'CUSTOM_PERFVM_SLOT': 1")
        self.servers.delete(bare)
        self.assertEqual([], self.complaints())

        connection = self.cloud._connections["dedicated1"]
        for domain in list(connection._vms.values()):
            connection.forget(domain)
        self.assert_complaint("has guests on None")


class TestCellsVerdict(cells.CellsCloud):
    """The same where Placement has another NUMA node than libvirt."""

    HOSTS = cells.CellsCloud.HOSTS[:1]

    def test_it_finds_what_drifts(self):
        judge = self.new_judge()
        server = self.boot("hp.4c.16g")
        judge.look()
        self.assertEqual([], list(judge.book_complaints(set())))

        path = f"/allocations/{server.id}"
        body = self.api.placement("GET", path)
        held = {uuid: has["resources"] for uuid, has in body["allocations"].items()}
        (own,) = [uuid for uuid, has in held.items() if cells.CPU in has]
        found = self.api.placement("GET", "/resource_providers")["resource_providers"]
        cell = {p["uuid"] for p in found if "_perfvm_cell_" in p["name"]}
        (other,) = cell - {own}
        for provider, amounts in (
            (other, held[own]),
            (own, held[own] | {cells.MEMORY: 1}),
            (own, {cells.CPU: 4}),
        ):
            taken = {uuid: held[uuid] for uuid in held.keys() - {own}}
            taken[provider] = amounts
            body = self.api.placement("GET", path)
            body["allocations"] = {u: {"resources": has} for u, has in taken.items()}
            self.api.placement("PUT", path, body)
            complaints = list(judge.book_complaints(set()))
            self.assertIn("it should be", complaints[0])
            self.assertTrue(all("guests have" in text for text in complaints[1:]))
            self.assertGreater(len(complaints), 1)
