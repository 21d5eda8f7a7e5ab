# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.policy import HostShape
from tests.processes.errors import SandboxError
from tests.processes.hostspec import (
    DEFAULT_HOSTS,
    PretendedHost,
    more_hosts,
    parse_hosts,
)


class HostSpecTest(testtools.TestCase):
    def test_groups_are_numbered_by_mode(self):
        spec = "2xdedicated:2x20, shared:2x20,1xdedicated:2x20x2@hp"
        even, smt = HostShape(2, 20), HostShape(2, 20, 2)
        self.assertEqual(
            [
                PretendedHost("dedicated1", "dedicated", even),
                PretendedHost("dedicated2", "dedicated", even),
                PretendedHost("shared1", "shared", even),
                PretendedHost("dedicated3", "dedicated", smt, "hp"),
            ],
            list(parse_hosts(spec)),
        )
        names = [host.name for host in parse_hosts(DEFAULT_HOSTS)]
        self.assertEqual(["dedicated1", "dedicated2", "shared1"], names)

    def test_more_hosts(self):
        there = "2xelastic:2x20@hp, shared:2x20"
        for added, expected in (
            ("2", "2xelastic:2x20@hp"),
            ("1xshared:1x4,elastic:2x20", "1xshared:1x4,elastic:2x20"),
        ):
            self.assertEqual(f"{there},{expected}", more_hosts(there, added))
        for wrong in ("", "0", "-1", "2.5", "10000", "2xfast:2x20"):
            error = self.assertRaises(SandboxError, more_hosts, there, wrong)
            self.assertIn("--add: ", str(error))

    def test_mistakes_name_the_group_and_the_remedy(self):
        for text, *words in (
            ("", "--hosts: ''", "expected [COUNTx]MODE:SHAPE[@CLASS]"),
            ("dedicated:2x20@", "'dedicated:2x20@'"),
            ("3xdedicated", "'3xdedicated'", "such as 3xdedicated:2x20"),
            ("dedicated:2x20,", "--hosts: ''"),
            ("2x20:dedicated", "'2x20:dedicated'"),
            ("2xfast:2x20", "mode 'fast'", "dedicated, shared, mixed, elastic"),
            ("0xshared:2x20", "'0xshared:2x20'", "expected [COUNTx]"),
            ("1xshared:2by20", "'2by20'", "such as 2x20 or 2x20x2"),
            ("-1xshared:2x20", "'-1xshared:2x20'"),
        ):
            error = self.assertRaises(SandboxError, parse_hosts, text)
            for word in words:
                self.assertIn(word, str(error))
