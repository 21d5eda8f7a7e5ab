# SPDX-License-Identifier: Apache-2.0
"""Why this host and not that: how Nova's weighers order the hosts that pass."""

from nova_perfvm.diagnose.ranking.order import Ranked, Ranking, equal, rank
from nova_perfvm.diagnose.ranking.weighers import weighers_of

__all__ = ["Ranked", "Ranking", "equal", "rank", "weighers_of"]
