# SPDX-License-Identifier: Apache-2.0

import testtools
from nova import conf
from nova.virt.libvirt import migration
from oslo_config import fixture

from nova_perfvm.changes.migrations.estimates import Estimates, LiveMigrationOptions
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.exceptions import PerfVMError


def options(**values):
    """Return what a nova.conf with such options says."""
    settings = {("libvirt", f"live_migration_{n}"): str(v) for n, v in values.items()}
    return LiveMigrationOptions.of(settings)


def move(*, live=True):
    return Move("i-a", "a", "hp1", "hp2", live=live, memory_mb=65536, pinned=True)


class OptionsTest(testtools.TestCase):
    """The options, beside Nova's own."""

    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(fixture.Config(conf.CONF))

    def test_defaults(self):
        for name, value in vars(LiveMigrationOptions()).items():
            self.assertEqual(conf.CONF.libvirt[f"live_migration_{name}"], value, name)

    def test_steps_of_the_downtime(self):
        for values in (
            {},
            {"downtime": 400, "downtime_delay": 30},
            {"downtime": 2000, "downtime_steps": 3, "downtime_delay": 3},
        ):
            named = {f"live_migration_{name}": v for name, v in values.items()}
            self.conf.config(group="libvirt", **named)
            for memory_mb in (512, 3072, 65536, 70000):
                expected = [
                    (after, milliseconds / 1000)
                    for after, milliseconds in migration.downtime_steps(
                        max(2, memory_mb / 1024)
                    )
                ]
                found = options(**values).limits(memory_mb)
                self.assertEqual(expected, list(found.downtimes))

    def test_what_nova_does_at_the_timeout(self):
        for values, expected in (
            ({}, ("abort", False, 51200)),
            ({"permit_auto_converge": True}, ("abort", True, 51200)),
            ({"permit_post_copy": True}, ("abort", False, 51200)),
            ({"timeout_action": "force_complete"}, ("pause", False, 51200)),
            (
                {
                    "timeout_action": "force_complete",
                    "permit_post_copy": "yes",
                    # Nova leaves it out beside post-copy.
                    "permit_auto_converge": 1,
                    "completion_timeout": 0,
                },
                ("post-copy", False, 0),
            ),
        ):
            found = options(**values).limits(65536)
            self.assertEqual(
                expected, (found.action, found.auto_converge, found.timeout_s)
            )

    def test_all_mistakes(self):
        wrong = {
            "bandwidth": (-1, "a whole number, 0 or more"),
            "downtime": (0, "a whole number, 100 or more"),
            "downtime_steps": ("x", "a whole number, 3 or more"),
            "timeout_action": ("bogus", "abort or force_complete"),
            "permit_post_copy": ("maybe", "true or false"),
        }
        given = {name: value for name, (value, _) in wrong.items()}
        error = self.assertRaises(PerfVMError, options, downtime_delay=3, **given)
        self.assertEqual(
            [
                f"[libvirt]live_migration_{name} = {value}: expected {wanted}"
                for name, (value, wanted) in wrong.items()
            ],
            str(error).splitlines(),
        )
        # Nova takes no less, either.
        for name in ("downtime", "downtime_steps", "downtime_delay"):
            option = f"live_migration_{name}"
            least = conf.CONF.libvirt._group._opts[option]["opt"].type.min
            options(**{name: least})
            self.assertRaises(PerfVMError, options, **{name: least - 1})


class EstimatesTest(testtools.TestCase):
    def test_bandwidth(self):
        idle = {"measured": {"i-a": (0.0, 1.0)}}
        found = Estimates(**idle).of(move())
        self.assertEqual((1.0, "yes"), (found.minutes, str(found)))
        half = Estimates(options(bandwidth=550), **idle).of(move())
        self.assertEqual(2.0, half.minutes)
        # The last round goes as fast as the network.
        self.assertLess(half.downtime_s, 0.05)
        more = Estimates(options(bandwidth=5000), **idle).of(move())
        self.assertEqual(found, more)
        self.assertIsNone(Estimates().of(move(live=False)))

    def test_assumptions(self):
        (said,) = Estimates().assumptions([move()])
        for words in (
            "1100 MiB/s",
            "Nova by default",
            "servers not measured: 1 of 1",
            "write 100 MiB/s",
        ):
            self.assertIn(words, said)
        (said,) = Estimates(options(bandwidth=550)).assumptions([move()])
        self.assertIn("550 MiB/s (live_migration_bandwidth)", said)
        slow = [*Estimates(dirty_rate=5000).assumptions([move(), move()])]
        self.assertEqual(["1 of 1 live migrations do not converge"], slow[1:])
        known = Estimates(measured={"i-a": (5.0, 1.0)}, options_of="nova.conf")
        (said,) = known.assumptions([move()])
        self.assertIn("of nova.conf", said)
        self.assertNotIn("measured", said)
        self.assertEqual([], [*known.assumptions([move(live=False)])])
