# SPDX-License-Identifier: Apache-2.0
"""Storms of requests from several clients at several schedulers."""

import os
import re
import tempfile
from pathlib import Path

import sqlalchemy as sa
import yaml

from nova_perfvm import findings
from tests import judge
from tests.sandbox import base, storms
from tests.sandbox.base import GENERAL, HP

_FILTERS_ONLY = Path(__file__).with_name("filters-only.yaml")
_MIXED_SIZES = Path(storms.__file__).parents[2] / (
    "etc/nova_perfvm/examples/mixed-sizes.yaml"
)
# The more CPUs, the fewer of them.
_PINNED = ("hp.4c.8g",) * 4 + ("hp.8c.16g",) * 3 + ("hp.16c.64g", "hp.20c.64g") * 2
ROUNDS = int(os.environ.get("PERFVM_STORM_ROUNDS", "1"))


def check_rounds(test):
    """Fill the hosts with either class, judge, and empty them."""
    for seed in range(ROUNDS):
        servers = test.storm(test.calls(seed))
        test.assert_invariants(servers)
        for flavor in (HP, GENERAL):
            test.assertGreater(storms.running(servers, flavor), 0)
        test.delete_all()


def check_retries(test, hosts, *codes):
    """Storm single hosts while Placement tries as often as it does by default.

    :param hosts: with CPUs for more high-performance VMs than Placement counts
    :param codes: what the audit finds beside the cause and too many on a host
    """

    def rush(seed):
        return test.calls(seed, 32, (HP,), hosts)

    test.assert_invariants(test.storm(rush(0)))
    test.delete_all()
    switch_snapshot_isolation_off(test.sandbox)
    set_retries(test.sandbox, 10)
    test.addCleanup(set_retries, test.sandbox, 1)
    for seed in range(5):
        test.storm(rush(seed))
        complaints, over = test.complaints(), test.books().over
        base.tell(f"{complaints} {over}")
        if complaints:
            break
        test.delete_all()
    else:
        test.fail("the storm proves nothing: Placement granted what it has")
    test.assertNotEqual((), over)
    expected = {
        findings.RETRY_COUNT,
        findings.OVER_INVENTORY,
        findings.TOO_MANY_ON_HOST,
    }
    test.assertEqual(expected.union(codes), {code for code, _, _ in test.audit()})


def set_retries(sandbox, count):
    """Restart Placement with another allocation_conflict_retry_count."""
    conf = sandbox.layout.etc / "placement" / "placement.conf"
    text = re.sub(r"(retry_count =) \d+", rf"\1 {count}", conf.read_text())
    conf.write_text(text)
    sandbox.restart(["placement"])


def switch_snapshot_isolation_off(sandbox):
    """Let MariaDB do what it does by default before 11.6.2."""
    engine = sa.create_engine(
        "mysql+pymysql://root@localhost",
        connect_args={"unix_socket": str(sandbox.layout.database_socket)},
    )
    name = "innodb_snapshot_isolation"
    with engine.connect() as connection:
        if connection.execute(sa.text(f"SHOW VARIABLES LIKE '{name}'")).first():
            connection.execute(sa.text(f"SET GLOBAL {name} = OFF"))
    engine.dispose()


class SlotsStormTest(storms.StormTest):
    """Dedicated, mixed and shared hosts."""

    HOSTS = "6xdedicated:2x20,2xdedicated:4x20,8xmixed:2x20,4xshared:2x20"
    OPTIONS = {"schedulers": 3}  # noqa: RUF012

    def test_invariants_hold(self):
        check_rounds(self)

    def test_retries_of_placement_break_them(self):
        check_retries(self, ("dedicated7", "dedicated8"))


class ElasticStormTest(storms.StormTest):
    """Elastic hosts, and a few dedicated ones."""

    HOSTS = "14xelastic:2x20,2xelastic:4x20,4xdedicated:2x20"
    OPTIONS = {"schedulers": 3}  # noqa: RUF012

    def test_invariants_hold(self):
        check_rounds(self)

    def test_retries_of_placement_break_them(self):
        check_retries(self, ("elastic15", "elastic16"), findings.UNITS_LACKING)


class FiltersOnlyStormTest(storms.StormTest):
    """The same without Placement's layer: why it is there."""

    HOSTS = "2xdedicated:4x20"
    OPTIONS = {"schedulers": 3, "policy": str(_FILTERS_ONLY)}  # noqa: RUF012

    def test_the_cap_is_exceeded(self):
        for seed in range(5):
            self.storm(self.calls(seed, 32, (HP,)))
            complaints = self.complaints()
            base.tell(f"{complaints}")
            if complaints:
                self.assertEqual((), self.books().over)
                codes = {code for code, _, _ in self.audit()}
                self.assertEqual({findings.TOO_MANY_ON_HOST}, codes)
                return
            self.delete_all()
        self.fail("the storm proves nothing: the filter alone kept the cap")


class CellsStormTest(storms.StormTest):
    """VMs of 4, 8, 16 and 20 vCPUs on hosts whose NUMA nodes Placement counts."""

    HOSTS = "12xdedicated:2x20"

    @classmethod
    def setUpClass(cls):
        policy = yaml.safe_load(_MIXED_SIZES.read_text(encoding="utf-8"))
        for name, vm_class in policy["classes"].items():
            # There is no Cinder.
            vm_class.pop("disk", None)
            if name != "general":
                vm_class["flavors"] |= {
                    "name": "hp.{vcpus}c.{memory_gb}g",
                    "root_gb": 1,
                }
        directory = Path(tempfile.mkdtemp(prefix="perfvm-"))
        cls.addClassCleanup(directory.rmdir)
        path = directory / "policy.yaml"
        cls.addClassCleanup(path.unlink)
        path.write_text(yaml.safe_dump(policy), encoding="utf-8")
        cls.OPTIONS = {"schedulers": 2, "policy": str(path)}
        super().setUpClass()

    def complaints(self):
        hosts = self.sandbox.settings.pretended
        return judge.complaints(
            hosts, self.guests(), 10, dict.fromkeys((4, 8, 16, 20), 1)
        )

    def test_no_claim_fails(self):
        for seed in range(ROUNDS):
            servers = self.storm(self.calls(seed, flavors=_PINNED))
            builds = {s["id"]: self._builds(s["id"]) for s in servers}
            base.tell(f"{sum(map(len, builds.values()))} claims on hosts")
            expected = {s["id"]: ["Success"] * bool(base.host_of(s)) for s in servers}
            self.assertEqual(expected, builds)
            self.assert_invariants(servers)
            self.delete_all()

    def _builds(self, server):
        """Return how each claim on a host ended, as nova-compute notes it."""
        path = f"/servers/{server}/os-instance-actions"
        (created,) = [
            action
            for action in self.compute.get(path).json()["instanceActions"]
            if action["action"] == "create"
        ]
        found = self.compute.get(f"{path}/{created['request_id']}").json()
        return [
            event["result"]
            for event in found["instanceAction"]["events"]
            if event["event"] == "compute__do_build_and_run_instance"
        ]
