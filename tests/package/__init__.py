# SPDX-License-Identifier: Apache-2.0
"""Tests of what is built for others to install."""

from tests import failing_rows

failing_rows.install()
