# SPDX-License-Identifier: Apache-2.0
"""Tests of what is built for others to install."""

from tests import rows

rows.install()
