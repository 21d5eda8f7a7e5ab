# SPDX-License-Identifier: Apache-2.0

from tests import failing_rows

failing_rows.install()
