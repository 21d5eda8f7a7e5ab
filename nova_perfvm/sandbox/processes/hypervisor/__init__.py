# SPDX-License-Identifier: Apache-2.0
"""nova-compute processes with the real libvirt driver over a pretended libvirt.

These modules run in the sandbox's environment, where Nova is.
"""
