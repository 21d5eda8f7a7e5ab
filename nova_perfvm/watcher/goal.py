# SPDX-License-Identifier: Apache-2.0
"""The strategy's goal, and the efficacy indicators that Watcher stores for each plan.

The strategy also reads earlier indicators: each audit makes an action plan, even if it
is empty.
"""

from typing import Any, Final

from watcher.decision_engine.goal import base
from watcher.decision_engine.goal.efficacy import base as efficacy
from watcher.decision_engine.goal.efficacy import indicators
from watcher.decision_engine.solution.efficacy import Indicator

GAINED: Final = "perfvm_gained_servers"
PLANNED: Final = "instance_migrations_count"
_WHAT: Final = "More servers of the class that fit after a day's migrations"


class GainedServers(indicators.IndicatorSpecification):
    """Number of servers that would fit in addition, even if the plan is empty."""

    schema = {"type": "integer", "minimum": 0}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(name=GAINED, description=_WHAT)


class FreeSlotsEfficacy(efficacy.EfficacySpecification):
    """The indicators of an action plan: servers gained, and number of migrations."""

    def get_indicators_specifications(self) -> list[Any]:
        return [GainedServers(), indicators.InstanceMigrationsCount()]

    def get_global_efficacy_indicator(self, indicators_map: Any) -> list[Indicator]:
        return [Indicator(GAINED, _WHAT, None, indicators_map[GAINED])]


class FreeSlots(base.Goal):
    """Make room for servers with pinned CPUs."""

    @classmethod
    def get_name(cls) -> str:
        return "perfvm_free_slots"

    @classmethod
    def get_display_name(cls) -> str:
        return "Room for high-performance servers"

    get_translatable_display_name = get_display_name

    @classmethod
    def get_efficacy_specification(cls) -> FreeSlotsEfficacy:
        return FreeSlotsEfficacy()
