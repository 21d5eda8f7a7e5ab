# SPDX-License-Identifier: Apache-2.0
"""What the audit tells an operator to do cures what it found, as it is printed.

Which test does so for which code is listed in tests/remedies.py.
"""

import functools
import re

import fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.generate.flavors import generate_flavors
from tests.cloud import servers
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, shell

STRANGER = "11111111-1111-4111-8111-111111111111"
ODD = "odd"
SERVER = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SLOT = f"resources:{const.RC_SLOT}"


class Remedies(shell.ShellMixin):
    """Does what is printed.

    :ivar check: the command that finds
    """

    check = ("audit",)

    def remedies(self, *codes):
        """Return the remedies of what is found, by code."""
        _, rows, _ = self.run_json(*self.check, "--policy", self.path)
        found = {code: [] for code in codes}
        for row in rows:
            if row["Code"] in found:
                found[row["Code"]].append(row["Remedy"])
        return found

    def cure(self, *codes, capitals=()):
        """Look that codes are found, do what is printed, look that they are gone.

        :param capitals: what to put in for words in capitals
        """
        remedies = self.remedies(*codes)
        self.assertEqual([], [c for c in codes if not remedies[c]], "not planted")
        each = dict.fromkeys(text for found in remedies.values() for text in found)
        # That of a host has those of its servers in it.
        whole = [one for one in each if not any(one in o for o in each if o != one)]
        text = "\n".join(whole)
        for word, value in dict(capitals).items():
            text = text.replace(word, value)
        self.assert_pasted(text)
        for server_id in set(re.findall(SERVER, text)):
            self.wait_for(server_id)
        self.cloud.run_periodics()
        self.assertEqual({code: [] for code in codes}, self.remedies(*codes), text)

    def wait_for(self, server_id):
        """Wait until Nova is done with a server, if there is one of that ID."""
        if server_id in {server["id"] for server in self.cloud.api.get_servers()}:
            look = functools.partial(self.servers._settled, server_id)
            servers.until(look, f"no task of {server_id}")

    def odd(self, name=ODD, vcpus=20, without=(), **changes):
        """Create a flavor like one of the class but for what is wrong with it."""
        (flavor,) = (f for f in generate_flavors(self.policy) if f.name == base.HP_64)
        specs = {k: v for k, v in flavor.extra_specs.items() if k not in without}
        more = {key.replace("__", ":"): value for key, value in changes.items()}
        return self.cloud.create_flavor(name, vcpus, 65536, 0, specs | more)


class SlotsCase(Remedies, base.FunctionalTest):
    """A cloud whose scheduler knows no policy."""

    PLACEMENT = "slots"
    CLOUD = {"enabled_filters": FILTERS_WITHOUT_PERFVM}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.path = self.write_policy()

    def start(self, mode, *hosts, **options):
        for host in hosts:
            self.cloud.start_configured(host, self.policy, mode, **options)


class TestResizes(SlotsCase):
    def test_servers_of_no_flavor_of_the_policy(self):
        self.start("dedicated", "hp1", "hp2", "hp3", "hp4", "hp5")
        self.start("shared", "g1")
        several = self.odd(
            vcpus=10,
            without=["hw:vif_multiqueue_enabled", SLOT],
            prefvm__class="high-performance",
        )
        self.boot(several, host="hp1")
        self.boot(self.odd("two-nodes", hw__numa_nodes="2"), host="hp3")
        self.boot(self.odd("no-class", without=[const.CLASS_KEY]), host="hp2")
        self.boot(host="hp2")
        changed = {"extra_specs": {"hw:watchdog_action": "reset"}}
        self.cloud.api.post_extra_spec(base.HP_64, changed)
        claims = {const.CLASS_KEY: "high-performance"}
        self.cloud.create_flavor("no-pins", 20, 65536, 0, claims)
        self.boot("no-pins", host="g1")
        self.cure(
            codes.NOT_CLAIMED,
            codes.WRONG_SIZE,
            codes.SLOT_STRANDED,
            codes.NO_MULTIQUEUE,
            codes.NEAR_MISS,
            codes.CONTRACT_DIFFERS,
            codes.NOT_IN_ONE_CELL,
            codes.CLASSLESS_PINNED,
            codes.FLAVOR_CHANGED,
            codes.NOT_PINNED,
        )
        self.cure(codes.FLAVOR_DIFFERS)


class TestPlacement(SlotsCase):
    RECENT = "nova_perfvm.cloud.snapshot._RECENT_S"

    def put_allocation(self, server, name, resources):
        """Give a server something of a provider more."""
        path = f"/allocations/{server.id}"
        body = self.admin_api.placement("GET", path)
        more = body["allocations"].setdefault(self.provider(name), {"resources": {}})
        more["resources"] |= resources
        self.admin_api.placement("PUT", path, body)

    def test_what_others_left(self):
        self.useFixture(fixtures.MonkeyPatch(self.RECENT, 0))
        self.start("shared", "g1", "g2", "g3")
        self.start("dedicated", "hp1")
        lost, elsewhere = (self.boot(base.GENERAL_2, host="g1") for _ in range(2))
        self.admin_api.placement("DELETE", f"/allocations/{lost.id}")
        self.put_allocation(elsewhere, "g2", {"VCPU": 1})
        self.leak("g3", STRANGER)
        self.change_traits("g2", more=[const.TRAIT_HIGH_PERFORMANCE])
        made = self.admin_api.placement("POST", "/resource_providers", {"name": "old"})
        vcpus = {"VCPU": {"total": 4}}
        body = {"resource_provider_generation": 0, "inventories": vcpus}
        path = f"/resource_providers/{made['uuid']}/inventories"
        self.admin_api.placement("PUT", path, body)
        # nova-api asks the policy of its own process which classes there are.
        self.cloud.api.microversion, before = "2.61", self.cloud.api.microversion
        self.cloud.create_flavor(ODD, 2, 4096, 0, {const.CLASS_KEY: "nobody"})
        self.cloud.api.microversion = before
        self.cloud.label_hosts("nobody", "g2")
        self.cure(
            codes.ALLOCATION_MISSING,
            codes.ALLOCATION_ELSEWHERE,
            codes.LEAKED_ALLOCATION,
            codes.ORPHANED_CHILD,
            codes.ORPHANED_PROVIDER,
            codes.TRAIT_DIFFERS,
            codes.CLASS_UNKNOWN,
            codes.LABEL_UNKNOWN,
            capitals={"CLASS": "general"},
        )
        self._slot_of_a_general_vm()

    def _slot_of_a_general_vm(self):
        general = self.boot(base.GENERAL_2, host="g3")
        path = f"/resource_providers/{self.provider('g3')}/inventories"
        body = self.admin_api.placement("GET", path)
        body["inventories"][const.RC_SLOT] = {"total": 2, "max_unit": 1}
        self.admin_api.placement("PUT", path, body)
        self.put_allocation(general, "g3", {const.RC_SLOT: 1})
        self.cure(codes.CLAIMED_TOO_MUCH)
