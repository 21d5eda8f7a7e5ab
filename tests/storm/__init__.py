# SPDX-License-Identifier: Apache-2.0

from tests import rows

rows.install()
