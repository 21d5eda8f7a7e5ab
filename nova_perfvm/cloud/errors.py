# SPDX-License-Identifier: Apache-2.0
"""The errors of requests to a cloud."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nova_perfvm.exceptions import PerfVMError


class CloudError(PerfVMError):
    """A request that failed; the message has the remedy.

    :ivar status: HTTP status, 0 where there was no answer
    :ivar code: Placement's own code of the error, empty without one
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        """Keep the status."""
        self.status = status
        self.code = code
        super().__init__(message)


class NotThereError(CloudError):
    """What was asked for does not exist."""


class ConflictError(CloudError):
    """Someone else was faster, or what is to go is in use: look again."""


class RefusedError(PerfVMError):
    """Nothing is done, or no more, until an operator has done something.

    :ivar refusals: each with its remedy
    """

    def __init__(self, refusals: tuple[str, ...]) -> None:
        """Keep the refusals."""
        self.refusals = refusals
        super().__init__("; ".join(refusals))


@contextlib.contextmanager
def openstack_errors() -> Iterator[None]:
    """Turn the error of reading an incomplete answer into one for an operator.

    A context manager or a decorator for what reads answers.

    :raises CloudError: in place of a KeyError and the like
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError) as exc:
        raise CloudError(
            f"an answer of Nova, Placement or Glance is not complete ({exc!r}): are "
            "the endpoints in the catalogue their own, and is a proxy between?"
        ) from exc
