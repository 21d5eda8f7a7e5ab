# SPDX-License-Identifier: Apache-2.0
"""Hosts of every kind under a policy of several pinned classes."""

import re
from pathlib import Path

import sqlalchemy as sa

from nova_perfvm import constants as const
from nova_perfvm import rules
from nova_perfvm.cloud.api import API
from tests.sandbox import base, looking

_POLICY = Path(__file__).with_name("several-classes.yaml")
# Of the policy's classes; beside those of its hosts.
_OPEN, _MIXED, _BLIND = "shared2", "shared3", "dedicated5"
# Nor does Placement know each of them.
_LOST = "shared4"

# Placement's layer is off, so that a class has no contract; SlotsTest and
# ElasticTest meet these.  No class wants a trait, and no host is elastic.
CONTRACT = {
    "flavor.resources",
    "flavor.traits",
    "host.trait_missing",
    "host.units_lacking",
}


class RulesTest(looking.LookingMixin, base.SandboxTest):
    HOSTS = (
        "2xdedicated:2x20@high-performance,1xdedicated:2x20@small,"
        "1xdedicated:2x10@small,1xdedicated:2x20@capped,4xshared:2x20"
    )
    OPTIONS = {"policy": str(_POLICY)}  # noqa: RUF012

    def test_explain_agrees_with_the_scheduler(self):
        # What the generator refuses for these classes, operators still write.
        self.configure(_OPEN)
        self.configure(_MIXED, "cpu_dedicated_set = 20-39", "cpu_shared_set = 0-19")
        self.hide_cells(_BLIND)
        self.lose_provider(_LOST)
        self.configure_schedulers()

        # No rule asks a host without a label for slots, and here labelled ones are
        # for classes alone: SlotsTest meets that one.  Where no CPU is shared,
        # Placement has no VCPU, and where all slots are taken seldom a PCPU: then
        # the filter is not asked.  And nobody can say that a create is a rebuild, or
        # spoils what a compute reports: test_odd_hosts does.
        unasked = {"host.no_free_slot", "host.no_shared_cpus"}
        others = {
            const.NOVA_NUMA_TOPOLOGY,
            const.NOVA_TENANT_AGGREGATE,
            const.PLACEMENT_GROUPS,
            const.PLACEMENT_NO_PROVIDER,
        }
        self.assert_agreement(
            2 * looking.STATES,
            often=unasked | others,
            logged=rules.REASON_CODES
            - {"host.classless_pinned", "host.unreadable", "request.not_a_rebuild"}
            - CONTRACT
            - unasked,
        )

    def hide_cells(self, host):
        """Let a compute node be as a hypervisor without NUMA reports it."""
        settings = self.sandbox.settings
        engine = sa.create_engine(settings.database_url("nova_cell1"))
        self.addCleanup(engine.dispose)
        with engine.begin() as connection:
            # nova-compute writes them anew now and then.
            connection.execute(
                sa.text(
                    "CREATE OR REPLACE TRIGGER blind BEFORE UPDATE ON compute_nodes "
                    "FOR EACH ROW SET NEW.numa_topology = "
                    f"IF(NEW.host = '{host}', NULL, NEW.numa_topology)"
                )
            )
            connection.execute(sa.text("UPDATE compute_nodes SET mapped = mapped"))

    def lose_provider(self, host):
        """Let Placement forget a host, whose compute would remind it."""
        self.sandbox.processes.stop([f"nova-compute-{host}"])
        api = API(self.sandbox.connect())
        path = f"/resource_providers?name={host}"
        (found,) = api.placement("GET", path, key="resource_providers")
        api.placement("DELETE", f"/resource_providers/{found['uuid']}")

    def configure_schedulers(self):
        """Let Placement offer hosts without PCPU to pinned VMs, for the filter to
        refuse; and keep projects off hosts of others.
        """
        path = self.sandbox.layout.etc / "nova" / "scheduler.conf"
        text = path.read_text()
        for before, after in (
            ("pcpu_query = True", "pcpu_query = False"),
            ("enabled_filters = ", "enabled_filters = AggregateMultiTenancyIsolation,"),
        ):
            self.assertIn(before, text)
            text = text.replace(before, after)
        path.write_text(text)
        for name in ("nova-scheduler-1", "nova-scheduler-2"):
            self.sandbox.processes.stop([name])
            self.sandbox.start(name)
            # Until then it is not told of aggregates that change.
            self.await_report("nova-scheduler", name)

    def configure(self, host, *cpu_sets):
        """Give a host other CPU sets than its mode's, or none."""
        path = self.sandbox.layout.host_etc(host) / "nova.conf"
        lines = [
            line
            for line in path.read_text().splitlines()
            if not re.match(r"cpu_(shared|dedicated)_set\b", line)
        ]
        path.write_text("\n".join([*lines, "[compute]", *cpu_sets, ""]))
        self.sandbox.processes.stop([f"nova-compute-{host}"])
        self.sandbox.start(f"nova-compute-{host}")
        self.await_report("nova-compute", host)
