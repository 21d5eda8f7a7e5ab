# SPDX-License-Identifier: Apache-2.0
"""Bugs of Nova that affect pinned VMs, one file each, and rules to find such VMs."""

from nova_perfvm.known_bugs.facts import CloudFacts, Hit
from nova_perfvm.known_bugs.hits import hits, in_order, of_release
from nova_perfvm.known_bugs.model import KnownBug, all_bugs
from nova_perfvm.known_bugs.releases import Release, ReleaseError, known_release

__all__ = [
    "CloudFacts",
    "Hit",
    "KnownBug",
    "Release",
    "ReleaseError",
    "all_bugs",
    "hits",
    "in_order",
    "known_release",
    "of_release",
]
