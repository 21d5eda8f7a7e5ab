# SPDX-License-Identifier: Apache-2.0
"""Executors that no service of an earlier cloud shuts down."""

import fixtures

try:
    from nova import thread_pool_factory
except ImportError:  # Nova 33 and older have no factory.
    thread_pool_factory = None


class Executors(fixtures.Fixture):
    """Give a cloud a factory of executors of its own.

    A service that stops shuts the process's factory down for good
    (``nova.compute.manager.ComputeManager.cleanup_host``).  On a busy machine that
    happens after the test's end, and then Nova's IsolatedExecutorFixture refuses all
    later tests of the process.  Nova's fixture itself ends a cloud's executors.
    """

    def _setUp(self) -> None:  # noqa: N802
        if thread_pool_factory is None:
            return
        for name, value in (
            ("FACTORY", thread_pool_factory.ThreadPoolFactory()),
            ("shutdown_all_executors", lambda: None),
        ):
            self.useFixture(fixtures.MockPatchObject(thread_pool_factory, name, value))
