# SPDX-License-Identifier: Apache-2.0
"""Remedies for files and commands that the collector could not read."""

from __future__ import annotations

from typing import Final

_COLLECT: Final = "and collect again"
_ABSENT: Final = {
    "virsh": "install libvirt-clients where collect runs, or put a virsh on its PATH "
    f"that runs in libvirt's container, {_COLLECT}",
    "ethtool": f"install ethtool where collect runs, {_COLLECT}",
}
_AS_ROOT: Final = f"run collect as root (sudo), {_COLLECT}"
# Parts of reasons, as the collector, the kernel and virsh word them.
_PRIVILEGE: Final = (
    "permission denied",
    "operation not permitted",
    "processes of others are hidden",
    "authentication unavailable",
)
_UNREACHABLE: Final = "failed to connect to the hypervisor"


def remedy(reason: str) -> str:
    """Return the remedy for an unread file or command; empty for other reasons.

    :param reason: words of the collector, the kernel or virsh
    """
    words = reason.lower()
    for tool, cure in _ABSENT.items():
        if f"no such command: {tool}" in words:
            return cure
    if any(part in words for part in _PRIVILEGE):
        return _AS_ROOT
    if _UNREACHABLE in words:
        return f"start libvirtd (or virtqemud), run collect as root, {_COLLECT}"
    return ""
