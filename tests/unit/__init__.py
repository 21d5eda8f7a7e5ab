# SPDX-License-Identifier: Apache-2.0
"""Unit tests mirror the package.  Nothing here starts a service."""

import hypothesis

from tests import rows

rows.install()

# Machines differ and are shared: no test may fail for being slow.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")
