# SPDX-License-Identifier: Apache-2.0
"""Nova's real libvirt driver over a pretended libvirt, in both sandboxes.

``fork`` starts nova-compute processes. All of it runs where Nova is.
"""
