# SPDX-License-Identifier: Apache-2.0
"""Nova's real libvirt driver over a fake libvirt.

``fork`` starts nova-compute processes. This package runs in Nova's environment.
"""
