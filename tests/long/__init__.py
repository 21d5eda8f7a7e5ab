# SPDX-License-Identifier: Apache-2.0
"""What takes long on sandboxes: storms, faults, many hosts and servers, every rule."""

from tests import rows

rows.install()
