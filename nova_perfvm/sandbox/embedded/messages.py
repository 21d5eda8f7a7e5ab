# SPDX-License-Identifier: Apache-2.0
"""Threads that listen for messages: woken when there is one.

The library lets each look again and again instead.  Some hundred threads that do so
take a core of their own, and a message waits for the next look.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import fixtures
from oslo_messaging._drivers import impl_fake

if TYPE_CHECKING:
    from collections.abc import Callable

# How long to wait for being woken; it would end what nobody wakes.
LOOK_S = 5


class Messages(fixtures.Fixture):
    """Wake those who listen for a message when it comes."""

    def _setUp(self) -> None:  # noqa: N802
        self._lock = threading.Lock()
        self._listeners: weakref.WeakKeyDictionary[Any, threading.Event] = (
            weakref.WeakKeyDictionary()
        )
        listener, exchange = impl_fake.FakeListener, impl_fake.FakeExchange
        for owner, name, value in (
            (listener, "poll", self._polling(listener.poll)),
            (listener, "stop", self._stopping(listener.stop)),
            (exchange, "deliver_message", self._delivering(exchange.deliver_message)),
        ):
            self.useFixture(fixtures.MockPatchObject(owner, name, value))

    def _event(self, listener: Any) -> threading.Event:
        with self._lock:
            return self._listeners.setdefault(listener, threading.Event())

    def _polling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def poll(listener: Any, **_options: Any) -> Any:
            event = self._event(listener)
            while True:
                event.clear()
                found = original(listener, timeout=0)
                if found or listener._stopped.is_set():  # noqa: SLF001
                    return found
                event.wait(LOOK_S)

        return poll

    def _stopping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def stop(listener: Any) -> None:
            original(listener)
            self._event(listener).set()

        return stop

    def _delivering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def deliver_message(
            exchange: Any,
            topic: str,
            *args: Any,
            server: str | None = None,
            **options: Any,
        ) -> None:
            original(exchange, topic, *args, server=server, **options)
            with self._lock:
                listeners = list(self._listeners.items())
            for listener, event in listeners:
                if _listens(listener, topic, server):
                    event.set()

        return deliver_message


def _listens(listener: Any, topic: str, server: str | None) -> bool:
    return any(
        target.topic == topic and server in {None, target.server}
        for target in listener._targets  # noqa: SLF001
    )
