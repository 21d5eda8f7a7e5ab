# SPDX-License-Identifier: Apache-2.0
"""Real guests, under QEMU's emulation: what they show proves the plumbing.

Figures of them are of no hardware.
"""

from tests import failing_rows

failing_rows.install()
