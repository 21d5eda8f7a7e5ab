# SPDX-License-Identifier: Apache-2.0
"""Work on several hosts at a time, each to its end."""

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
    """Do the same with each item, a few at a time; yield each as it ends.

    After Ctrl-C, or when nobody wants more, nothing more is begun, and what has
    begun goes on to its end.

    :param work: called in threads
    :param interrupted: told of Ctrl-C, before what has begun has ended
    :raises KeyboardInterrupt: in the end, after Ctrl-C
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
