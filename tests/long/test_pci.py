# SPDX-License-Identifier: Apache-2.0
"""Explain beside the real scheduler, for many requests of PCI devices."""

import os

from tests.functional import test_pci


class TestAgreement(test_pci.TestAgreement):
    VERDICTS = int(os.environ.get("PERFVM_PCI_VERDICTS", "2000"))
    PATIENCE = 12
