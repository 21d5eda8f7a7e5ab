# SPDX-License-Identifier: Apache-2.0
"""Log hosts that cannot be judged, each of them once."""

from __future__ import annotations

import threading
from typing import Any

from oslo_log import log as logging

from nova_perfvm.printable import one_line, printable

LOG = logging.getLogger(__name__)

Host = tuple[str, str]


def name_of(host_state: Any) -> Host:
    """Return a host and its node for the log, also where these are odd themselves."""
    return _text(host_state, "host"), _text(host_state, "nodename")


def _text(host_state: Any, name: str) -> str:
    try:
        return one_line(printable(str(getattr(host_state, name))))
    except Exception:  # noqa: BLE001  whatever it is, the host has no name
        return "unknown"


class UnreadableHosts:
    """Which hosts could not be judged when they were last asked about.

    Threads share it.  A host is well again when a request of the flavor for which it
    was not is: requests of others may not come to what cannot be read.

    :ivar reader: who judges, for the log
    :ivar does: what it cannot do, for the log
    """

    def __init__(self, reader: str, does: str = "read") -> None:
        self.reader = reader
        self.does = does
        self._lock = threading.Lock()
        self._flavors: dict[Host, str] = {}

    def found(self, host: Host, flavor: str, error: str) -> None:
        """Log that a host cannot be judged, unless that is known."""
        with self._lock:
            known = host in self._flavors
            self._flavors[host] = flavor
        if not known:
            LOG.warning(
                "%s cannot %s host %s (%s): %s", self.reader, self.does, *host, error
            )

    def read(self, host: Host, flavor: str) -> None:
        """Log that a host can be judged again, if it could not be before."""
        if self._flavors.get(host) != flavor:
            # Nearly always.
            return
        with self._lock:
            known = self._flavors.pop(host, None) is not None
        if known:
            LOG.warning("%s can %s host %s (%s) again", self.reader, self.does, *host)
