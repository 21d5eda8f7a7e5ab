# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How the libvirt that the sandboxes pretend numbers the CPUs of a host."""

from __future__ import annotations

import itertools

from nova_perfvm.hostconfig import Node, Topology, make_topology
from nova_perfvm.model import HostShape


def pretended_topology(shape: HostShape, memory_gb: int) -> Topology:
    """Give the topology that Nova's fake libvirt reports for a shape.

    Its SMT siblings are neighbours, CPUs 0 and 1 share a core; Linux on x86
    numbers otherwise, see :func:`nova_perfvm.hostconfig.from_shape`.
    """
    numbers = itertools.count()
    nodes = [
        Node(
            node,
            tuple(
                tuple(next(numbers) for _ in range(shape.threads))
                for _ in range(shape.cores)
            ),
        )
        for node in range(shape.cells)
    ]
    return make_topology(nodes, f"pretended {shape}").with_memory(memory_gb)
