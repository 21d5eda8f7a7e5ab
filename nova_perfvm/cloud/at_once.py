# SPDX-License-Identifier: Apache-2.0
"""Work on several hosts at a time, each to its end."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ItemOutcome(Generic[_Item, _Result]):
    """How the work on one item ended."""

    item: _Item
    _result: _Result | None = None
    _error: BaseException | None = None

    def result(self) -> _Result:
        """Return what the work gave, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


def each(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    workers: int,
    interrupted: Callable[[int, int], None] = lambda _begun, _left: None,
) -> Generator[ItemOutcome[_Item, _Result]]:
    """Do the same with each item, a few at a time; return how each ended, as it ends.

    After Ctrl-C nothing more is begun, and what has begun goes on to its end.  At
    another one the threads are left to the end of the process.

    :param work: called in threads
    :param interrupted: told at Ctrl-C how many are at work still, and with how many
        nobody has begun
    :raises KeyboardInterrupt: in the end, after Ctrl-C
    """
    todo = deque(items)
    ended: queue.SimpleQueue[ItemOutcome[_Item, _Result]] = queue.SimpleQueue()
    threads = [
        threading.Thread(target=_run, args=(work, todo, ended.put), daemon=True)
        for _ in range(min(workers, len(items)))
    ]
    waiting, stopped = len(items), False
    # Goes on behind the one at whose start Ctrl-C came.
    starting = iter(threads)
    try:
        while waiting:
            try:
                for thread in starting:
                    thread.start()
                outcome = ended.get()
            except KeyboardInterrupt:
                if stopped:
                    raise
                stopped = True
                left = _drop(todo)
                waiting -= left
                interrupted(waiting, left)
                continue
            waiting -= 1
            yield outcome
    except KeyboardInterrupt:
        # The second one, wherever it came: nobody waits for what is at work.
        if stopped and waiting:
            threads.clear()
        raise
    finally:
        _drop(todo)
        for thread in threads:
            # Ctrl-C may have come before one was started.
            if thread.is_alive():
                thread.join()
    if stopped:
        raise KeyboardInterrupt


def _run(
    work: Callable[[_Item], _Result],
    todo: deque[_Item],
    put: Callable[[ItemOutcome[_Item, _Result]], None],
) -> None:
    """Work in a thread until nothing is left to do."""
    with contextlib.suppress(IndexError):
        while True:
            put(_outcome(work, todo.popleft()))


def _outcome(
    work: Callable[[_Item], _Result], item: _Item
) -> ItemOutcome[_Item, _Result]:
    try:
        return ItemOutcome(item, work(item))
    except BaseException as exc:  # noqa: BLE001  raised where it is asked for
        return ItemOutcome(item, None, exc)


def _drop(todo: deque[_Item]) -> int:
    """Take from the workers what they have not begun; return how much that was."""
    dropped = 0
    with contextlib.suppress(IndexError):
        while True:
            todo.popleft()
            dropped += 1
    return dropped
