# SPDX-License-Identifier: Apache-2.0
"""Explain beside the real scheduler, for many requests in server groups and zones."""

import os

from tests.functional import test_server_groups


class TestAgreement(test_server_groups.TestAgreement):
    VERDICTS = int(os.environ.get("PERFVM_GROUP_VERDICTS", "2000"))
    PATIENCE = 12
