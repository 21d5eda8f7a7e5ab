# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack of separate processes on one Linux machine, for trying and tests.

``sandbox.Sandbox`` starts and stops it.  What is pretended is the hypervisor
(``tests.hypervisor``) and the network below Neutron (``binding``);
these run in OpenStack's own environment and may import it.
"""
