# SPDX-License-Identifier: Apache-2.0
"""Watcher's own decision engine and applier on a real Nova: ``make watcher``."""

from tests import failing_rows

failing_rows.install()
