# SPDX-License-Identifier: Apache-2.0
"""Each row of the matrix is a test: of all pairs, and of triples by scheme.

With PERFVM_MATRIX_ROW that row is the only test.
"""

import os

from tests.functional import base
from tests.matrix import factors, rows

ONE = os.environ.get("PERFVM_MATRIX_ROW")


def of(scheme):
    return [row for row in factors.triples() if row.scheme == scheme]


class RowsTest(base.FunctionalTest):
    CLOUD = None
    PATIENCE = 2


if ONE:

    @rows.each([factors.Row.parse(ONE)])
    class TestRow(RowsTest):
        pass

else:

    @rows.each(factors.pairs())
    class TestPairs(RowsTest):
        pass

    @rows.each(of("slots"))
    class TestTriplesOfSlots(RowsTest):
        pass

    @rows.each(of("units"))
    class TestTriplesOfUnits(RowsTest):
        pass

    @rows.each(of("cells"))
    class TestTriplesOfCells(RowsTest):
        pass

    @rows.each(of("none"))
    class TestTriplesOfNone(RowsTest):
        pass
