# SPDX-License-Identifier: Apache-2.0
"""The table of ``explain --ranking``: hosts by weighers, with all figures in JSON."""

from __future__ import annotations

from itertools import pairwise

from nova_perfvm.diagnose.ranking import Ranked, Ranking
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.formats.both import Both


def table(ranking: Ranking, host: str | None, *, whole: bool) -> Table:
    """Return the hosts in nova-scheduler's order, each compared with the one above.

    :param host: list only the first host, the second and this one, each compared with
        the first; None for all hosts
    :param whole: also have columns for weighers that add no points
    :raises PerfVMError: when the filters refuse `host`
    """
    hosts = ranking.hosts
    pairs: list[tuple[Ranked | None, Ranked]] = [(None, hosts[0])]
    pairs += pairwise(hosts)
    if host is not None:
        named = [one for one in hosts if host in {one.view.host, one.view.name}]
        if not named:
            raise PerfVMError(
                f"host {host} would not take the server: leave --ranking out to see why"
            )
        pairs = [*pairs[:2], *((hosts[0], f) for f in named if f not in hosts[:2])]
    # nova-scheduler weighs hosts only where there are at least two.
    shown = {
        name: index
        for index, name in enumerate(ranking.weighers if hosts[1:] else ())
        if whole or any(found.shares[index].points for found in hosts)
    }
    rows = []
    for above, found in pairs:
        shares = [found.shares[index] for index in shown.values()]
        change = above and ranking.smallest_change(above, found)
        rows.append(
            (
                found.view.name,
                Both(f"{found.weight:.3f}", found.weight),
                *(
                    Both(f"{s.points:.3f}", {**s._asdict(), "points": s.points})
                    for s in shares
                ),
                Both(str(change or ""), change and change._asdict()),
            )
        )
    return ("Host", "Sum", *shown, "To Go Up" if host is None else "To Be First"), rows
