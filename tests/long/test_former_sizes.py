# SPDX-License-Identifier: Apache-2.0
"""VMs of a class's former size on elastic hosts."""

from tests.functional.elastic import ElasticTest
from tests.functional.test_former_sizes import SizeCase


class TestUnits(SizeCase, ElasticTest):
    """Elastic hosts: a VM of either size takes a child provider."""

    def setUp(self):
        super().setUp()
        for name in ("hp1", "hp2"):
            self.cloud.start_host(name)
            self.enroll(name)
