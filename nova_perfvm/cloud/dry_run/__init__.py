# SPDX-License-Identifier: Apache-2.0
"""Nova's own scheduler, run dry: it selects a server's host, but claims nothing.

A command calls :mod:`.process`, which starts the other modules in a process of their
own on a controller, where Nova and its configuration are.
"""
