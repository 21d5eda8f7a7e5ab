# SPDX-License-Identifier: Apache-2.0
"""Log each unreadable host once, and once more when it is readable again."""

from __future__ import annotations

import threading
from typing import Any

from oslo_log import log as logging

from nova_perfvm.printable import one_line, printable

LOG = logging.getLogger(__name__)

Host = tuple[str, str]


def name_of(host_state: Any) -> Host:
    """Return a host's name and node as printable text; ``unknown`` if unreadable."""
    return _text(host_state, "host"), _text(host_state, "nodename")


def _text(host_state: Any, name: str) -> str:
    try:
        return one_line(printable(str(getattr(host_state, name))))
    except Exception:  # noqa: BLE001  a host without a readable name
        return "unknown"


class UnreadableHosts:
    """The hosts whose last judgement failed; threads share the object.

    A host counts as readable again only after a request with the flavor for which it
    failed: other flavors may be judged without the unreadable field.

    :ivar reader: name of the filter or weigher, for the log
    :ivar does: verb for the log, such as ``read``
    """

    def __init__(self, reader: str, does: str = "read") -> None:
        self.reader = reader
        self.does = does
        self._lock = threading.Lock()
        self._flavors: dict[Host, str] = {}

    def found(self, host: Host, flavor: str, error: str) -> None:
        """Remember that a host cannot be judged; log the host's first failure."""
        with self._lock:
            known = host in self._flavors
            self._flavors[host] = flavor
        if not known:
            LOG.warning(
                "%s cannot %s host %s (%s): %s", self.reader, self.does, *host, error
            )

    def read(self, host: Host, flavor: str) -> None:
        """Log that a host can be judged again, if this flavor failed before."""
        if self._flavors.get(host) != flavor:
            # The usual case, without the lock.
            return
        with self._lock:
            known = self._flavors.pop(host, None) is not None
        if known:
            LOG.warning("%s can %s host %s (%s) again", self.reader, self.does, *host)
