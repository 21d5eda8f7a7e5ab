# SPDX-License-Identifier: Apache-2.0
"""Watcher's own decision engine and applier on a real Nova: ``make watcher``."""

from tests import rows

rows.install()
