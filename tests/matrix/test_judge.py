# SPDX-License-Identifier: Apache-2.0
"""The judge of the matrix finds planted faults."""

import re
from unittest import mock

from tests.functional import base
from tests.matrix import factors, judge
from tests.matrix.clouds import Cloud
from tests.matrix.operations import Operations

PLAIN = {name: values[0] for name, values in factors.FACTORS.items()}
ROW = PLAIN | {
    "scheme": "cells",
    "size": "small",
    "pci": "required",
    "counted": "yes",
    "beside": "alike",
    "most": "2",
}


class TestJudge(base.FunctionalTest):
    CLOUD = None

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(judge, "SETTLE_S", 0))
        self.cloud = self.useFixture(Cloud(factors.Row(**ROW), ours=True))
        (self.step,) = Operations(self.cloud)()
        self.judge = judge.Judge(self.cloud)

    def assert_complaint(self, words, audited=False):
        found = self.judge.complaints(audited=audited)
        self.assertTrue([text for text in found if words in text], found)

    def test_it_finds_planted_faults(self):
        (server,) = self.step.servers
        self.assertEqual([], self.judge.complaints(audited=True))
        self.assertTrue(self.judge.near(server.id))
        row = self.judge._row
        for changed, words in (
            (row._replace(most="0"), "of the class"),
            (row._replace(size="class"), "pinned to"),
            (row._replace(size="two"), "CPUs on"),
            (row._replace(scheme="slots"), "and not"),
        ):
            self.judge._row = changed
            self.assert_complaint(words)
        self.judge._row = row

        domains = self.cloud.cloud._connections[server.host]._vms.values()
        (domain,) = [vm for vm in domains if vm.UUIDString() == server.id]
        kept = domain.kept_xml
        for pattern, new, words in (
            ("(</?)hostdev", r"\1gone", "Nova {'0000:81:00.0'}"),
            (r'(<vcpupin vcpu="0" cpuset=)"\d+"', r'\1"17"', "Nova's database"),
            ("<vcpupin", "<gone", "pinned to"),
        ):
            domain.kept_xml = re.sub(pattern, new, kept)
            self.assertNotEqual(kept, domain.kept_xml)
            self.assert_complaint(words)
        domain.kept_xml = kept

        api, path = self.cloud.api, f"/allocations/{server.id}"
        body = api.placement("GET", path)
        api.placement("DELETE", path)
        self.assert_complaint("Placement has {}")
        self.assert_complaint("audit: ", audited=True)
        stranger = body | {"consumer_generation": None}
        api.placement("PUT", f"/allocations/{server.id[:-1]}f", stranger)
        self.assert_complaint("is on no host, and Placement has")
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects

        instance = objects.Instance.get_by_uuid(
            context.get_admin_context(), server.id, []
        )
        instance.host = "c"
        instance.save()
        self.assert_complaint("Nova has it on c")
