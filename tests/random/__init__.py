# SPDX-License-Identifier: Apache-2.0
"""Long random walks in a cloud in the test's process."""

from tests import failing_rows

failing_rows.install()
