# SPDX-License-Identifier: Apache-2.0
"""Tests on a real Nova and Placement in the test's own process."""

# Before any test module imports Nova: it chooses the threading mode.
from tests import failing_rows
from tests.cloud import bootstrap  # noqa: F401

failing_rows.install()
