# SPDX-License-Identifier: Apache-2.0
"""What the audit prints for servers that Nova, or somebody, has given up.

tests/long has servers in each status.
"""

import functools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from tests.cloud import servers
from tests.functional import base, glance, test_remedies

ODD = "odd"
# What a server that is stuck is, and what it is after the remedy; None: nothing.
STUCK = (
    ("active", "powering-off", "ACTIVE"),
    ("active", "resize_prep", "ACTIVE"),
    ("stopped", "powering-on", "ACTIVE"),
    ("error", "powering-off", "ERROR"),
    ("active", "deleting", None),
    ("building", "spawning", None),
)


class TestGivenUp(test_remedies.SlotsCase):
    """Servers that Nova does not go on with."""

    check = ("audit", "--stuck-after", "0")

    def setUp(self):
        super().setUp()
        self.start("dedicated", "hp1")
        self.start("shared", "g1")

    def plant(self, **changes):
        """Return a server that is changed in Nova's database."""
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects

        server = self.boot(base.GENERAL_2, host="g1")
        admin = context.get_admin_context()
        cell = self.cloud._services.host_mappings["g1"].cell_mapping
        context.set_target_cell(admin, cell)
        instance = objects.Instance.get_by_uuid(admin, server.id)
        instance.update(changes)
        instance.save()
        return server, functools.partial(objects.InstanceFault, admin)

    def status(self, server):
        shown = {one["id"]: one["status"] for one in self.cloud.api.get_servers()}
        return shown.get(server.id)

    def test_stuck(self):
        found = [self.plant(vm_state=vm, task_state=task)[0] for vm, task, _ in STUCK]
        self.cure(codes.STUCK)
        gone = [one for one, (*_, after) in zip(found, STUCK, strict=True) if not after]
        for server in gone:
            servers.until(lambda one=server: not self.status(one), f"{server} deleted")
        after = [after for *_, after in STUCK]
        self.assertEqual(after, [self.status(server) for server in found])

    def test_build_cut_off(self):
        nowhere = dict.fromkeys(("host", "node", "compute_id"))
        server, fault = self.plant(vm_state="error", **nowhere)
        said = {"code": 500, "message": "MessagingTimeout", "details": ""}
        fault(instance_uuid=server.id, host="g1", **said).create()
        self.cure(codes.BUILD_CUT_OFF)
        self.assertIsNone(self.status(server))

    def test_image(self):
        self.glance = self.useFixture(glance.GlanceFixture())
        image = self.glance.add(**{const.IMAGE_VIF_MULTIQUEUE: "false"})
        self.cure(codes.IMAGE_CONFLICT)
        self.assertEqual("true", image[const.IMAGE_VIF_MULTIQUEUE])
