# SPDX-License-Identifier: Apache-2.0
"""Nova's own scheduler, asked where a server would go, without claiming anything.

:mod:`.process` asks it from a command; all else runs in the process that it starts, on
a controller, where Nova and its configuration are.
"""
