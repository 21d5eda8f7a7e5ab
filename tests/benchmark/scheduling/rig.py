# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: Placement of each scheme, and a scheduler of each arm."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

from nova_perfvm.generate.flavors import placement_names
from nova_perfvm.policy import loader
from tests.benchmark.placements import Placement
from tests.benchmark.scheduling import pools, schedulers
from tests.benchmark.scheduling.arms import SCHEMES
from tests.benchmark.scheduling.databases import placement_database
from tests.benchmark.scheduling.flavors import generated, policy

WORKERS = 2
# Schemes with names of Placement's.
_NAMED = ("slots", "units", "units4", "units8", "cells")


class Rig:
    """A cloud that is filled with one pool after the other.

    :param databases: that run
    """

    def __init__(self, databases):
        self._databases = databases
        self._stack = contextlib.ExitStack()
        self._placements, self._schedulers = {}, {}
        self._pool = self._guests = None
        self._fresh = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def fill(self, pool, hosts, taken):
        """Write another cloud in the place of the one before."""
        self._pool = pool
        self._guests = pools.fill(pool, hosts, taken)
        schemes = {_cloud(scheme) for scheme in pool.schemes}
        for scheme in schemes:
            self.placement(scheme)
        with ThreadPoolExecutor() as threads:
            written = [
                threads.submit(self._databases.fill_nova, pool, self._guests),
                *(
                    threads.submit(
                        self._databases.fill_placement, pool, scheme, self._guests
                    )
                    for scheme in schemes
                ),
            ]
        for one in written:
            one.result()
        self._fresh = set()

    def placement(self, scheme, **options):
        """Return the Placement of a scheme, started when it is first asked for.

        :param options: of [placement]
        """
        key = (_cloud(scheme), *sorted(options.items()))
        if key not in self._placements:
            made = self._stack.enter_context(
                Placement(
                    self._databases,
                    placement_database(scheme),
                    workers=WORKERS,
                    options=options,
                )
            )
            every = [f for name in _NAMED for f in generated(name).values()]
            for kind, name in placement_names(every):
                path = "traits" if kind == "trait" else "resource_classes"
                made.ask("PUT", f"/{path}/{name}")
            self._placements[key] = made
        return self._placements[key]

    def scheduler(self, arm, number=0, **options):
        """Return a scheduler process of an arm that knows the cloud as it is.

        :param number: tells several of an arm from each other
        :param options: of its Placement's [placement]
        """
        key = (arm, number, *sorted(options.items()))
        if key not in self._schedulers:
            self._schedulers[key] = self._start(arm, options)
        process = self._schedulers[key]
        if key not in self._fresh:
            counts = [len(here.flavors) for here in self._guests]
            process.ask("refresh", counts, self._asks_twice(arm))
            self._fresh.add(key)
        return process

    @staticmethod
    def at_once(orders):
        """Return the answers to orders, each (process, what to do, arguments...)."""
        orders = list(orders)
        for process, *order in orders:
            process.send(*order)
        return [process.receive() for process, *_ in orders]

    def _asks_twice(self, arm):
        # disable_fallback_pcpu_query is to be True where all hosts have cpu sets.
        return arm.scheme == "stock" or self._pool.cpus == "open"

    def _start(self, arm, options):
        etc = self._databases.layout.etc
        for scheme in (*SCHEMES, "cells"):
            path = etc / f"{scheme}.yaml"
            path.write_text(loader.dump(policy(scheme)), encoding="utf-8")
        placement = self.placement(arm.scheme, **options)
        path = etc / f"nova-scheduler-{len(self._schedulers)}.conf"
        text = arm.nova_conf(self._databases, placement.url, etc / f"{arm.scheme}.yaml")
        path.write_text(text, encoding="utf-8")
        process = schedulers.Scheduler(arm.scheme, path)
        self._stack.callback(process.stop)
        return process


def _cloud(scheme):
    # The filter alone changes nothing of a cloud.
    return "stock" if scheme == "filter" else scheme
