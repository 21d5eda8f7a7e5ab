# SPDX-License-Identifier: Apache-2.0
"""A covering matrix: what schemes, sizes, devices and operations do to each other.

A row gives each factor a value (:mod:`.factors`).  It is done on two clouds of equal
hosts, with nova_perfvm and on Nova by itself (:mod:`.clouds`, :mod:`.operations`),
and judged (:mod:`.judge`, :mod:`.rows`).
"""

from tests import failing_rows

failing_rows.install()
