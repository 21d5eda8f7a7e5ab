# SPDX-License-Identifier: Apache-2.0
"""``perfvm metrics``."""

from __future__ import annotations

from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.osc.formats import monitoring
from nova_perfvm.osc.overview import OverviewCommand


class WriteMetrics(OverviewCommand):
    """Write slots, findings of the audit and refusals by reason for Prometheus.

    The text is for node_exporter's textfile collector.
    """

    def render(self, found: Overview) -> str:
        """Return Prometheus' text format."""
        return monitoring.overview(found)
