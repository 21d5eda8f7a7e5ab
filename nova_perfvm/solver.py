# SPDX-License-Identifier: Apache-2.0
"""Linear and mixed-integer programs, and their solution by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

Terms = Mapping[int, float]


class Solution(NamedTuple):
    """The best solution found, and a bound for all solutions.

    :ivar values: of the columns; without a solution the start's, or none
    :ivar bound: bound of the objective, if a column is whole
    :ivar duals: dual values of the rows, if no column is whole
    :ivar infeasible: whether HiGHS has proven that no solution exists
    """

    values: Sequence[float]
    bound: float
    duals: Sequence[float]
    infeasible: bool


@dataclass
class Program:
    """Columns (unknowns) with their limits, and rows (sums of columns) with theirs."""

    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)

    def column(self, most: float = math.inf, *, whole: bool = True) -> int:
        """Add an unknown of 0 or more; return its number."""
        self.upper.append(most)
        self.whole.append(whole)
        return len(self.upper) - 1

    def row(
        self, terms: Terms, most: float = math.inf, least: float = -math.inf
    ) -> None:
        self.rows.append((terms, least, most))

    def most(
        self,
        objective: Terms,
        time_s: float,
        gap: float = 1e-6,
        start: Sequence[float] = (),
        without: Collection[int] = (),
    ) -> Solution:
        """Maximize an objective.

        :param gap: the search ends when the bound is no further from the best
        :param start: a solution to begin with
        :param without: columns that stay 0
        """
        # The modules of an extra.
        highspy, np = import_module("highspy"), import_module("numpy")

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.upper), len(self.rows)
        costs = np.zeros(lp.num_col_)
        for column, value in objective.items():
            costs[column] = value
        lp.col_cost_, lp.sense_ = costs, highspy.ObjSense.kMaximize
        lp.col_lower_ = np.zeros(lp.num_col_)
        lp.col_upper_ = np.where(np.isin(range(lp.num_col_), [*without]), 0, self.upper)
        kinds = highspy.HighsVarType
        lp.integrality_ = [
            kinds.kInteger if whole else kinds.kContinuous for whole in self.whole
        ]
        lp.row_lower_ = np.array([least for _, least, _ in self.rows], float)
        lp.row_upper_ = np.array([most for _, _, most in self.rows], float)
        matrix, lengths = lp.a_matrix_, [len(terms) for terms, _, _ in self.rows]
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.num_col_, matrix.num_row_ = lp.num_col_, lp.num_row_
        matrix.start_ = np.cumsum([0, *lengths])
        matrix.index_ = np.array([c for terms, _, _ in self.rows for c in terms], int)
        matrix.value_ = np.array(
            [v for terms, _, _ in self.rows for v in terms.values()], float
        )
        solver = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "time_limit": max(0.1, time_s),
            # The command may run beside a cloud's services.
            "threads": 1,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": gap,
        }.items():
            solver.setOptionValue(option, value)
        solver.passModel(lp)
        if len(start):
            known = highspy.HighsSolution()
            known.col_value = list(start)
            solver.setSolution(known)
        solver.run()
        info, solution = solver.getInfo(), solver.getSolution()
        found = info.primal_solution_status == highspy.kSolutionStatusFeasible
        return Solution(
            solution.col_value if found else start,
            info.mip_dual_bound,
            solution.row_dual if found else (),
            solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible,
        )


def installed() -> bool:
    """Return whether HiGHS is installed."""
    return find_spec("highspy") is not None
