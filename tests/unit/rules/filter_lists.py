# SPDX-License-Identifier: Apache-2.0
"""What is said of lists of enabled filters, whoever is asked."""

from nova_perfvm import findings as codes

# (filters as nova.conf has them, codes, words of the findings)
LISTS = (
    ("ComputeFilter,PerfVMFilter,PerfVMNUMATopologyFilter", [], ""),
    (
        "ComputeFilter,PerfVMFilter,NUMATopologyFilter",
        [codes.CHEAPER_FILTER],
        "PerfVMNUMATopologyFilter gives the same for less",
    ),
    (
        "PerfVMNUMATopologyFilter,PerfVMFilter",
        [codes.FILTER_ORDER],
        "lists PerfVMNUMATopologyFilter before PerfVMFilter, which costs far less",
    ),
    (
        "NUMATopologyFilter,PerfVMFilter",
        [codes.FILTER_ORDER, codes.CHEAPER_FILTER],
        "lists NUMATopologyFilter before PerfVMFilter",
    ),
    (
        "PerfVMFilter,PerfVMNUMATopologyFilter,NUMATopologyFilter",
        [codes.JUDGED_TWICE],
        "every host is judged twice",
    ),
    (
        "NUMATopologyFilter,PerfVMFilter,PerfVMNUMATopologyFilter",
        [codes.FILTER_ORDER, codes.JUDGED_TWICE],
        "lists NUMATopologyFilter before PerfVMFilter",
    ),
    (
        "PerfVMFilter,ComputeFilter,PerfVMFilter,PerfVMNUMATopologyFilter",
        [codes.JUDGED_TWICE],
        "lists PerfVMFilter twice: every host is judged twice",
    ),
    (
        "PerfVMFilter,PerfVMNUMATopologyFilter,ComputeFilter,PerfVMFilter",
        [codes.JUDGED_TWICE],
        "lists PerfVMFilter twice: every host is judged twice",
    ),
    (
        "PerfVMFilter,PerfVMNUMATopologyFilter,A,PerfVMNUMATopologyFilter",
        [codes.JUDGED_TWICE],
        "lists PerfVMNUMATopologyFilter and PerfVMNUMATopologyFilter",
    ),
    (
        "PerfVMFilter",
        [codes.FILTER_MISSING],
        "lacks PerfVMNUMATopologyFilter: pinned VMs are sent to hosts that refuse",
    ),
    (
        "NUMATopologyFilter",
        [codes.FILTER_MISSING, codes.CHEAPER_FILTER],
        "lacks PerfVMFilter: only Placement enforces the policy",
    ),
    ("", [codes.FILTER_MISSING, codes.FILTER_MISSING], "lacks PerfVMFilter"),
)
