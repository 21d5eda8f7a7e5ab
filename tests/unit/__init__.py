# SPDX-License-Identifier: Apache-2.0
"""Unit tests mirror the package.  Nothing here starts a service."""

import hypothesis

from tests import failing_rows

failing_rows.install()

# Machines differ and are shared: no test may fail for being slow.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")
