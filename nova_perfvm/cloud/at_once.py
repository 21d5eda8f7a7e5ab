# SPDX-License-Identifier: Apache-2.0
"""Work on several items in threads; a begun item is always finished."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def each(
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    workers: int,
    interrupted: Callable[[], None] = lambda: None,
) -> Generator[tuple[_Item, Future[_Result]]]:
    """Call `work` for each item in threads; yield (item, future) as each one ends.

    After Ctrl-C, or when the caller stops iterating, no further item is begun; items
    that have begun are finished.

    :param work: called in threads
    :param workers: the number of threads
    :param interrupted: called after Ctrl-C, before the begun items are awaited
    :raises KeyboardInterrupt: after Ctrl-C, when all begun items have ended
    """
    pool = ThreadPoolExecutor(workers)
    waiting: dict[Future[_Result], _Item] = {}
    try:
        for item in items:
            waiting[pool.submit(work, item)] = item
        for future in as_completed(tuple(waiting)):
            yield waiting.pop(future), future
    except KeyboardInterrupt:
        begun = [future for future in waiting if not future.cancel()]
        interrupted()
        for future in as_completed(begun):
            yield waiting[future], future
        raise
    finally:
        pool.shutdown(cancel_futures=True)
