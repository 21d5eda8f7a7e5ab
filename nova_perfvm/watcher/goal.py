# SPDX-License-Identifier: Apache-2.0
"""The goal of the strategy, and the figures that Watcher keeps of each action plan.

They are also the strategy's memory: each audit has an action plan, if an empty one.
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
    """How many more servers would fit, whether migrations are planned or held back."""

    schema = {"type": "integer", "minimum": 0}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(name=GAINED, description=_WHAT)


class FreeSlotsEfficacy(efficacy.EfficacySpecification):
    """What an action plan achieves: room for servers, by so many migrations."""

    def get_indicators_specifications(self) -> list[Any]:
        return [GainedServers(), indicators.InstanceMigrationsCount()]

    def get_global_efficacy_indicator(self, indicators_map: Any) -> list[Indicator]:
        return [Indicator(GAINED, _WHAT, None, indicators_map[GAINED])]


class FreeSlots(base.Goal):
    """Room for servers that own CPUs."""

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
