# SPDX-License-Identifier: Apache-2.0
"""Bindings of the ports that the pretended Neutron has, fit for threads."""

from __future__ import annotations

import collections
from collections.abc import ItemsView
from typing import Any


class Bindings(dict[str, Any]):
    """The bindings of a port, by host.

    One of Nova's threads may add to them while another one looks through them.
    """

    def items(self) -> ItemsView[str, Any]:
        """Return those of this moment."""
        return dict(self).items()


def let_threads_share(neutron: Any) -> None:
    """Let the bindings of Nova's NeutronFixture be changed while they are read."""
    neutron._port_bindings = collections.defaultdict(
        Bindings,
        {port: Bindings(b) for port, b in neutron._port_bindings.items()},
    )
