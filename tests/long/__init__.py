# SPDX-License-Identifier: Apache-2.0
"""What takes long on sandboxes: storms, faults, many hosts and servers, every rule."""

from tests import failing_rows

failing_rows.install()
