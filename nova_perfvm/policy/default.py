# SPDX-License-Identifier: Apache-2.0
"""The built-in policy: that of the LY article, for hosts of 2 x 20 CPUs.

``etc/nova_perfvm/perfvm.yaml`` says the same with every key and comments; a test
compares the two.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

DEFAULT_TEXT: Final = """\
kind: policy
schema_version: "1.0"
host_shape: 2x20
placement: slots
managed_hosts: all
classes:
  high-performance:
    vcpus: 20
    cpu_policy: dedicated
    numa_nodes: 1
    max_per_host: 2
    exclusive: host
    vif_multiqueue: true
    disk: {source: volume, volume_type: nvme-tcp}
    flavors:
      name: hp.{vcpus}c.{memory_gb}g
      memory_gb: [64, 128, 200]
      root_gb: 0
  general:
    default: true
    cpu_policy: shared
    disk: {source: image}
    flavors:
      name: g.{vcpus}c.{memory_gb}g
      sizes:
        - {vcpus: 1, memory_gb: 2, root_gb: 20}
        - {vcpus: 2, memory_gb: 4, root_gb: 40}
        - {vcpus: 4, memory_gb: 8, root_gb: 40}
        - {vcpus: 8, memory_gb: 16, root_gb: 80}
"""
DEFAULT_DOCUMENT: Final[dict[str, Any]] = yaml.safe_load(DEFAULT_TEXT)
