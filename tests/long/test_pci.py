# SPDX-License-Identifier: Apache-2.0
"""Explain beside the real scheduler, for many requests of PCI devices."""

import os

from nova_perfvm import constants as const
from tests.functional import test_pci


class TestAgreement(test_pci.TestAgreement):
    VERDICTS = int(os.environ.get("PERFVM_PCI_VERDICTS", "2000"))
    PATIENCE = 12


class TestPlanInPlacement(test_pci.TestPlan):
    IN_PLACEMENT = True
    TAKEN = f"{const.PLACEMENT_RESOURCE}, {const.NOVA_PCI}"
