# SPDX-License-Identifier: Apache-2.0
"""The plugin's class, which Tempest loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tempest.test_discover import plugins

from nova_perfvm.tempest_plugin import config


class PerfVMTempestPlugin(plugins.TempestPlugin):
    """Tests and options of nova-perfvm; the tests use Tempest's own clients."""

    def load_tests(self) -> tuple[str, str]:
        """Return the directory of the tests, and the directory above nova_perfvm."""
        here = Path(__file__).resolve().parent
        return str(here / "tests"), str(here.parents[1])

    def register_opts(self, conf: Any) -> None:
        conf.register_opt(config.service_option, group=config.SERVICE_GROUP)
        conf.register_group(config.group)
        conf.register_opts(config.options, group=config.group)

    def get_opt_lists(self) -> list[tuple[str, list[Any]]]:
        return [
            (config.SERVICE_GROUP, [config.service_option]),
            (config.group.name, config.options),
        ]
