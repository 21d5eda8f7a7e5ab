# SPDX-License-Identifier: Apache-2.0
"""Everything between configuration files and a cloud that boots servers."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from nova_perfvm.sandbox.processes import (
    catalogue,
    computes,
    services,
    starter,
)
from nova_perfvm.sandbox.processes.content import Content
from nova_perfvm.sandbox.processes.databases import Databases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nova_perfvm.policy import Policy
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.process import Processes


class BringUp:
    """One start of a sandbox, step by step."""

    def __init__(
        self,
        layout: Layout,
        processes: Processes,
        start: starter.Starter,
        databases: Databases,
        connect: Callable[[], Any],
        tell: Callable[[str], None],
    ) -> None:
        """Start nothing yet.

        :param connect: gives an SDK connection of the administrator
        :param tell: called with each step that is done
        """
        self._layout = layout
        self._processes = processes
        self._starter = start
        self._databases = databases
        self._connect = connect
        self._tell = tell

    def run(self, policy: Policy, schedulers: int) -> None:
        """Start everything.

        :param schedulers: number of nova-schedulers
        :raises SandboxError: when something does not come up
        """
        hosts = self._starter.hosts
        self._infrastructure()
        # Imports for some seconds, on a core that waits for disks meanwhile.
        self._starter.launch(computes.FORK_SERVER)
        self._apis(schedulers)
        since = dt.datetime.now(dt.UTC)
        for host in hosts:
            self._starter.launch(computes.PREFIX + host.name)
        computes.await_reports(self._processes, self._connect(), hosts, since)
        self._tell(f"{len(hosts)} computes")
        for _ in self._once("hosts"):
            self._databases.discover_hosts()
        for _ in self._once("content"):
            Content(self._connect(), policy).make(hosts, self._tell)

    def _infrastructure(self) -> None:
        with ThreadPoolExecutor(len(starter.INFRASTRUCTURE)) as pool:
            jobs = {
                name: pool.submit(self._starter.start, name)
                for name in starter.INFRASTRUCTURE
            }
            jobs["mariadb"].result()
            self._tell("MariaDB")
            for _ in self._once("databases"):
                self._databases.make(self._tell)
            for job in jobs.values():
                job.result()
        self._tell("RabbitMQ, memcached")

    def _apis(self, schedulers: int) -> None:
        first = ("keystone", "placement", "glance")
        for name in first:
            self._starter.launch(name)
        self._starter.await_api("keystone")
        for _ in self._once("catalogue"):
            catalogue.make(self._connect(), self._starter.settings)
        self._tell("keystone")
        names = [f"{services.SCHEDULER}-{n}" for n in range(1, schedulers + 1)]
        for name in ("neutron", "nova-api", services.CONDUCTOR, *names):
            self._starter.launch(name)
        for name in ("placement", "glance", "neutron", "nova-api"):
            self._starter.await_api(name)
            self._tell(name)

    def _once(self, what: str) -> Iterator[None]:
        """Run a loop's body if it never came to its end before."""
        mark = self._layout.made / what
        if not mark.exists():
            yield
            mark.touch()
