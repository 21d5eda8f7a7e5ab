# SPDX-License-Identifier: Apache-2.0
"""The errors of requests to a cloud."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nova_perfvm.exceptions import PerfVMError


class CloudError(PerfVMError):
    """A failed request to the cloud; the message names the remedy.

    :ivar status: HTTP status, 0 without an answer
    :ivar code: Placement's error code, empty if the answer has none
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class NotThereError(CloudError):
    """The requested object does not exist."""


class ConflictError(CloudError):
    """The object was changed or is in use: read the cloud again before another try."""


class RefusedError(PerfVMError):
    """A plan is not begun, or not continued, until an operator removes the obstacles.

    :ivar refusals: the obstacles, each with its remedy
    """

    def __init__(self, refusals: tuple[str, ...]) -> None:
        self.refusals = refusals
        super().__init__("; ".join(refusals))


@contextlib.contextmanager
def openstack_errors() -> Iterator[None]:
    """Report an incomplete answer of a service as a CloudError.

    A context manager, and a decorator for functions that read answers.

    :raises CloudError: in place of KeyError, TypeError, AttributeError and IndexError
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError) as exc:
        raise CloudError(
            f"an answer of Nova, Placement or Glance is not complete ({exc!r}): are "
            "the endpoints in the catalogue their own, and is a proxy between?"
        ) from exc
