# SPDX-License-Identifier: Apache-2.0
"""What is compared: schemes, each with Nova's NUMATopologyFilter and with ours."""

import dataclasses

from nova_perfvm.rules.enabled_filters import NOVA_FILTERS

LIMIT = 1000
RECOMMENDED = 100
FEW = 10
SCHEMES = ("stock", "filter", "slots", "units")
NUMA, REPLACEMENT = "NUMATopologyFilter", "PerfVMNUMATopologyFilter"


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to configure nova-scheduler.

    :ivar scheme: ``stock``: Nova alone; ``filter``: with our filter and weigher;
        ``slots``, ``units`` and ``cells``: with Placement's layer as well
    :ivar numa: the filter that judges NUMA topologies
    :ivar limit: [scheduler]max_placement_results
    """

    scheme: str
    numa: str = NUMA
    limit: int = LIMIT

    @property
    def name(self):
        """What it is called in tables."""
        replaced = ", replaced" if self.numa == REPLACEMENT else ""
        limit = f", {self.limit}" if self.limit != LIMIT else ""
        scheme = {"filter": "filter only", "units": "elastic"}.get(self.scheme)
        return f"{scheme or self.scheme}{replaced}{limit}"

    @property
    def filters(self):
        """[filter_scheduler]enabled_filters."""
        ours = () if self.scheme == "stock" else ("PerfVMFilter",)
        return (*NOVA_FILTERS, *ours, self.numa)

    def nova_conf(self, databases, placement_url, policy_file):
        """Return nova.conf of its nova-scheduler."""
        weighers = ["nova.scheduler.weights.all_weighers"]
        if self.scheme != "stock":
            weighers.append("nova_perfvm.scheduler.weights.PerfVMWeigher")
        return "\n".join(
            (
                *("[DEFAULT]", "transport_url = fake:/", "use_stderr = false"),
                f"log_file = {databases.layout.logs}/nova-scheduler.log",
                "default_log_levels = nova=ERROR,nova_perfvm=ERROR",
                # Its computes report once, when they are made.
                "service_down_time = 1000000",
                *("[database]", f"connection = {databases.url('nova_cell1')}"),
                *("[api_database]", f"connection = {databases.url('nova_api')}"),
                *("[placement]", "auth_type = admin_token", "token = admin"),
                *(
                    f"endpoint = {placement_url}",
                    f"endpoint_override = {placement_url}",
                ),
                "[filter_scheduler]",
                "available_filters = nova.scheduler.filters.all_filters",
                "available_filters = nova_perfvm.scheduler.filters.all_filters",
                f"enabled_filters = {','.join(self.filters)}",
                f"weight_classes = {','.join(weighers)}",
                *("[scheduler]", f"max_placement_results = {self.limit}"),
                f"enable_isolated_aggregate_filtering = {self.scheme == 'units'}",
                *("[perfvm]", f"policy_file = {policy_file}"),
                *("[oslo_messaging_notifications]", "driver = noop"),
                "",
            )
        )


def arms(schemes=SCHEMES):
    """Return the arms of schemes, Nova's own first."""
    if "cells" in schemes:
        # The replaced filter is part of it.
        limits = (LIMIT, FEW)
        return [Arm("stock"), *(Arm("cells", REPLACEMENT, n) for n in limits)]
    found = [Arm(s, n) for s in schemes for n in (NUMA, REPLACEMENT)]
    return found + [
        Arm(s, REPLACEMENT, RECOMMENDED) for s in schemes if s in {"slots", "units"}
    ]
