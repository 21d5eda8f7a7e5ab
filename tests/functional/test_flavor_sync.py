# SPDX-License-Identifier: Apache-2.0
"""Flavors of a real Nova made what the policy says, by the real client."""

import pathlib
import shlex
from unittest import mock

import fixtures
import yaml

from nova_perfvm import constants as const
from nova_perfvm.cloud import flavors as cloud_flavors
from nova_perfvm.cloud import sync
from nova_perfvm.cloud.api import API
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.formats import shell
from nova_perfvm.policy import loader
from tests.functional import base
from tests.functional.client import ClientMixin

MEMBER = {"user": "member", "roles": "member,reader"}
# The policy changes from call to call.
SYNC = ("flavor", "sync", "--policy-changed", "--yes")


class DeathError(BaseException):
    """A process that is gone: nothing of it runs any more."""


class TestFlavorSync(ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"
    FLAVORS = ()

    def setUp(self):
        super().setUp()
        self.api = API(self.connection("admin", "admin,member,reader"))

    def flavors(self):
        """Return {name: (size, extra specs)} of all flavors."""
        return {
            flavor.name: (
                (flavor.vcpus, flavor.memory_mb, flavor.disk_gb),
                dict(flavor.extra_specs),
            )
            for flavor in cloud_flavors.flavors(self.api)
        }

    def desired(self):
        return {
            flavor.name: (
                (flavor.vcpus, flavor.memory_mb, flavor.root_gb),
                dict(flavor.extra_specs),
            )
            for flavor in generate_flavors(loader.load())
        }

    def sync(self, *options):
        """Run it; return its rows as (action, type, name)."""
        confirm = () if "--dry-run" in options else ("--yes",)
        status, rows, self.said = self.run_json(*SYNC[:-1], *confirm, *options)
        self.assertEqual(0, status, self.said)
        return [(row["Action"], row["Type"], row["Name"]) for row in rows]

    def ids(self):
        return {flavor.name: flavor.id for flavor in cloud_flavors.flavors(self.api)}

    def set_specs(self, name, specs):
        path = f"/flavors/{self.ids()[name]}/os-extra_specs"
        self.api.nova("POST", path, {"extra_specs": specs})
        return path

    def test_flavors_that_nova_refuses_stop_no_others(self):
        # nova-api has a policy that knows no such class.
        text = yaml.safe_dump(loader.load().as_document(), sort_keys=False)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "perfvm.yaml"
        path.write_text(text.replace("high-performance:", "fast:"))
        status, rows, stderr = self.run_json(*SYNC, "--policy", str(path))
        self.assertEqual(1, status, stderr)
        rows = [row for row in rows if row["Type"] == "flavor"]
        self.assertEqual(
            {("failed", "hp"), ("create", "g.")},
            {(row["Action"], row["Name"][:2]) for row in rows},
        )
        for row in rows:
            failed = row["Action"] == "failed"
            self.assertEqual(failed, row["Name"] not in self.flavors())
            self.assertEqual(failed, f"flavor {row['Name']}, " in stderr)

    def test_sync_repair_and_sync_again(self):
        self.cloud.create_flavor("theirs", 2, 2048, 10, {"quota:cpu_shares": "5"})
        others = self.flavors()

        self.assert_command(0, "create", "flavor", "sync", "--dry-run")
        self.assert_command(1, "add --yes", "flavor", "sync")
        self.assertEqual(others, self.flavors())

        names = [
            ("create", "resource class", const.RC_SLOT),
            ("create", "trait", const.TRAIT_HIGH_PERFORMANCE),
        ]
        done = self.sync()
        self.assertEqual(names, done[:2])
        self.assertEqual(self.desired() | others, self.flavors())
        # Nova has heard of all that these flavors name.
        self.cloud.start_host("h1", shared="0-39")
        self.boot(self.ids()[base.GENERAL_2])

        self.assertEqual({"leave"}, {action for action, _, _ in self.sync()})
        self.assertEqual("nothing to do\n", self.said)

        path = self.set_specs(base.HP_64, {"hw:numa_nodes": "2", "hw:numa_mem.0": "1"})
        self.api.nova("DELETE", f"{path}/hw:cpu_policy")
        done = [row for row in self.sync() if row[0] != "leave"]
        expected = [("set", "flavor", base.HP_64), ("unset", "flavor", base.HP_64)]
        self.assertEqual(expected, done)
        self.assertEqual(self.desired() | others, self.flavors())

        self._sizes_that_differ()

    def _sizes_that_differ(self):
        policy = self._policy_with_general_size(vcpus=3)
        before = self.flavors()
        status, stdout, stderr = self.run_command(*SYNC, *policy)
        self.assertEqual((1, ""), (status, stdout))
        self.assertEqual(1, len(stderr.splitlines()), stderr)
        for words in ("2 vCPUs where the policy says 3", "another name"):
            self.assertIn(words, stderr)
        self.assertEqual(before, self.flavors())

    def _policy_with_general_size(self, vcpus):
        document = loader.load().as_document()
        general = document["classes"]["general"]["flavors"]
        general["name"] = "g.2c.4g"
        general["sizes"] = [{"vcpus": vcpus, "memory_gb": 4, "root_gb": 40}]
        return ["--policy", self.write_policy(classes=document["classes"])]

    def test_keys_of_others_and_keys_that_the_policy_drops(self):
        theirs = {
            "quota:disk_read_iops_sec": "900",
            "accounting:code": "7",
            "aggregate_instance_extra_specs:ssd": "true",
        }
        own = {"hw:watchdog_action": "reset"}
        desired = self.desired()[base.HP_64]
        size, specs = desired
        self.cloud.create_flavor(base.HP_64, *size, specs | theirs)
        self.sync("--class", "high-performance")
        self.assertEqual((size, specs | theirs), self.flavors()[base.HP_64])

        classes = loader.load().as_document()["classes"]
        classes["high-performance"]["extra_specs"] = own
        policy = ("--policy", self.write_policy(classes=classes))
        self.sync(*policy)
        self.assertEqual((size, specs | theirs | own), self.flavors()[base.HP_64])
        rows = self.sync()
        self.assertIn(("unset", "flavor", base.HP_64), rows)
        self.assertEqual((size, specs | theirs), self.flavors()[base.HP_64])
        self.assertEqual({"leave"}, {action for action, _, _ in self.sync()})

        strict = ("--policy", self.write_policy(foreign_keys="unset"))
        self.sync(*strict)
        self.assertEqual(desired, self.flavors()[base.HP_64])

    def test_whatever_is_in_the_way(self):
        """Each is one line; nothing is changed, and the next run finishes."""
        before = self.flavors()
        for words, arguments, identity in (
            ("rights of an administrator", SYNC, MEMBER),
            ("no class 'gold'", (*SYNC, "--class", "gold"), {}),
            ("generates no such flavor", (*SYNC, "--adopt", "theirs"), {}),
            ("placement: none", (*SYNC, *self._none(), "--isolated-aggregates"), {}),
        ):
            status, stdout, stderr = self.run_command(*arguments, **identity)
            self.assertEqual((1, ""), (status, stdout))
            self.assertEqual(1, len(stderr.splitlines()), stderr)
            self.assertIn(words, stderr)
            self.assertEqual(before, self.flavors())

        self.cloud.create_flavor(base.HP_64, 20, 65536)
        self.assert_command(1, f"--adopt {base.HP_64}", *SYNC)
        self._nova_api_that_refuses()
        self._death_at_each_step()
        self._shell_gives_the_same()

    def _none(self):
        return ["--policy", self.write_policy(placement="none")]

    def two(self):
        """Return a flavor of each class."""
        found = generate_flavors(loader.load())
        return [f for f in found if f.name in {base.HP_64, base.GENERAL_2}]

    def assert_two(self):
        found, desired = self.flavors(), self.desired()
        for flavor in self.two():
            self.assertEqual(desired[flavor.name], found[flavor.name])

    def _nova_api_that_refuses(self):
        """Extra specs are refused: no flavor is left without, and none is lost."""
        before = self.flavors()
        path = self.write_policy(
            classes={
                name.replace("general", "gold"): vm_class
                for name, vm_class in loader.load().as_document()["classes"].items()
            }
        )
        # This nova-api has the built-in policy, which has no class gold.
        options = ["--policy", path, "--class", "gold"]
        self.assert_command(1, "does nova-api have this policy", *SYNC, *options)
        self.assertEqual(before, self.flavors())

    def _death_at_each_step(self):
        original = API._request
        changing = {"POST", "PUT", "DELETE"}

        def request(api, service, method, *rest):
            answer = original(api, service, method, *rest)
            if method in changing:
                raise DeathError
            return answer

        for _ in range(30):
            with mock.patch.object(API, "_request", request):
                try:
                    plan = cloud_flavors.plan(
                        self.api,
                        self.two(),
                        policy=loader.load(),
                        adopt=[base.HP_64],
                    )
                    sync.make(self.api, cloud_flavors.apply, plan.changes)
                except DeathError:
                    continue
            break
        else:
            self.fail("it does not come to an end")
        self.assert_two()

    def _shell_gives_the_same(self):
        """Let the client run each line of what flavor generate prints."""
        ids = self.ids()
        for flavor in self.two():
            self.api.nova("DELETE", f"/flavors/{ids[flavor.name]}")
        for line in shell.flavor_block(self.two()).splitlines():
            words = shlex.split(line.removesuffix("||"), comments=True)
            if words[:1] == ["openstack"] and words[1:3] != ["flavor", "show"]:
                status, _, stderr = self.run_client(*words[1:])
                self.assertEqual(0, status, (line, stderr))
        self.assert_two()
        rows = self.sync("--dry-run")
        for flavor in self.two():
            self.assertIn(("leave", "flavor", flavor.name), rows)
