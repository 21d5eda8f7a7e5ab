# SPDX-License-Identifier: Apache-2.0
"""The built-in policy: that of the LY article, for hosts of 2 x 20 CPUs.

``etc/nova_perfvm/perfvm.yaml`` says the same with comments; a test compares
the two.
"""

from __future__ import annotations

from typing import Any, Final

DEFAULT_DOCUMENT: Final[dict[str, Any]] = {
    "schema_version": "1.0",
    "host_shape": "2x20",
    "placement": "slots",
    "managed_hosts": "all",
    "classes": {
        "high-performance": {
            "vcpus": 20,
            "former_vcpus": [],
            "cpu_policy": "dedicated",
            "cpu_thread_policy": None,
            "smt": "cores",
            "emulator_threads": None,
            "numa_nodes": 1,
            "max_per_host": 2,
            "exclusive": "host",
            "vif_multiqueue": True,
            "mem_page_size": None,
            "host_traits": [],
            "disk": {
                "source": "volume",
                "volume_type": "nvme-tcp",
                "read_iops": None,
                "write_iops": None,
            },
            "flavors": {
                "name": "hp.{vcpus}c.{memory_gb}g",
                "memory_gb": [64, 128, 200],
                "root_gb": 0,
            },
        },
        "general": {
            "default": True,
            "cpu_policy": "shared",
            "disk": {"source": "image"},
            "flavors": {
                "name": "g.{vcpus}c.{memory_gb}g",
                "sizes": [
                    {"vcpus": 1, "memory_gb": 2, "root_gb": 20},
                    {"vcpus": 2, "memory_gb": 4, "root_gb": 40},
                    {"vcpus": 4, "memory_gb": 8, "root_gb": 40},
                    {"vcpus": 8, "memory_gb": 16, "root_gb": 80},
                ],
            },
        },
    },
    "elastic": {"slots": None},
}
