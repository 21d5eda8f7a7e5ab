# SPDX-License-Identifier: Apache-2.0
"""``perfvm map``."""

from __future__ import annotations

from nova_perfvm.diagnose import cloud_map
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.osc.formats import cloud_map as page
from nova_perfvm.osc.overview import OverviewCommand


class DrawMap(OverviewCommand):
    """Draw hosts, their NUMA nodes and CPUs, and the servers there, as an HTML page.

    It has the audit's findings, which hosts would take a server of which flavor,
    and why the others would not.
    """

    def render(self, found: Overview) -> str:
        """Return the page."""
        return page.html(cloud_map.document(found))
