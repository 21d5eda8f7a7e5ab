# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack of separate processes on one Linux machine, for trials and tests.

``sandbox.Sandbox`` starts and stops it.  Only the hypervisor
(``nova_perfvm.sandbox.hypervisor``), the network below Neutron (``binding``) and
Cinder's disks (``volumes``) are fake; these modules run in OpenStack's own environment
and may import OpenStack.
"""
