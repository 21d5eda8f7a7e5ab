# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler's manager in processes of its own, which are asked over a pipe."""

import contextlib
import gc
import logging
import multiprocessing
import signal
import time
import traceback
import warnings

import oslo_messaging as messaging
from nova import config, exception, objects, rpc
from nova import context as nova_context
from nova.conf import CONF
from nova.scheduler import manager as scheduler_manager
from oslo_log import log as oslo_log

from nova_perfvm.cloud.dry_run.no_writes import no_writes
from nova_perfvm.cloud.dry_run.request import Asked
from nova_perfvm.cloud.dry_run.scheduling import DryRun
from tests.benchmark.scheduling import flavors, limits, rows
from tests.benchmark.scheduling.counts import Counts
from tests.processes.errors import SandboxError

_GRACE_S = 5


class Scheduler:
    """A nova-scheduler of one arm in a process of its own.

    :param path: of its nova.conf
    """

    def __init__(self, scheme, path):
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(
            target=_serve, args=(theirs, scheme, str(path)), daemon=True
        )
        self._child.start()
        theirs.close()

    def send(self, order, *args):
        """Ask for one of the orders of :class:`Orders`."""
        self._pipe.send((order, args))

    def receive(self):
        """Return the answer to the last order.

        :raises SandboxError: when it failed, or the process has ended
        """
        try:
            done, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise SandboxError("a scheduler process has ended") from None
        if not done:
            raise SandboxError(f"nova-scheduler failed:\n{answer}")
        return answer

    def ask(self, order, *args):
        """Ask, and return the answer."""
        self.send(order, *args)
        return self.receive()

    def stop(self):
        """End the process."""
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._child.join(_GRACE_S)
        if self._child.is_alive():
            self._child.kill()
            self._child.join()


class Orders:
    """What a scheduler process is asked to do."""

    def __init__(self, scheme, path):
        warnings.simplefilter("ignore")
        config.parse_args(["nova-scheduler", "--config-file", path])
        objects.register_all()
        oslo_log.setup(CONF, "nova")
        logging.getLogger("nova").setLevel(logging.ERROR)
        logging.getLogger("nova_perfvm").setLevel(logging.ERROR)
        rpc.init(CONF)
        self._scheme = scheme
        self._context = nova_context.RequestContext(
            flavors.USER, flavors.PROJECT, is_admin=True
        )
        self._number = 0
        # It would read all servers, in a thread of its own; see refresh().
        CONF.set_override("track_instance_changes", False, "filter_scheduler")
        self.manager = scheduler_manager.SchedulerManager()
        self.manager.host_manager.track_instance_changes = True
        CONF.clear_override("track_instance_changes", "filter_scheduler")
        self._counts = Counts(self.manager)

    def refresh(self, instances, fallback):
        """Begin with a cloud that was just written.

        :param instances: number of servers of each host
        :param fallback: whether hosts without cpu sets are asked for, too
        """
        CONF.set_override("disable_fallback_pcpu_query", not fallback, "workarounds")
        hosts = self.manager.host_manager
        hosts.refresh_cells_caches()
        hosts.aggs_by_id.clear()
        hosts.host_aggregates_map.clear()
        if self._scheme == "units":
            # An isolated one, which clouds with other schemes do not have.
            hosts._init_aggregates()
        # As computes have told it, which takes a message from each.
        hosts._instance_info = {
            rows.host_name(number): {
                "instances": {
                    (uuid := rows.server_uuid(number, index)): objects.Instance(
                        self._context, uuid=uuid
                    )
                    for index in range(count)
                },
                "updated": True,
            }
            for number, count in enumerate(instances)
        }

    def schedule(self, flavor):
        """Place one VM, and take it away again; return what it cost."""
        spec = self._spec(flavor)
        self._counts.clear()
        gc.collect()
        began, started = time.monotonic(), time.process_time()
        placed = self._place(spec)
        spent, waited = time.process_time() - started, time.monotonic() - began
        found = {
            "placed": placed is not None,
            "scheduler_ms": round(spent * 1000, 3),
            "placement_ms": round(self._counts.placement_ms, 3),
            "wall_ms": round(waited * 1000, 3),
            "candidates": self._counts.candidates,
            "hosts": self._counts.hosts,
            "refused": self._counts.refused,
        }
        self._remove(spec, placed)
        return found

    def dry(self, flavor):
        """Return the CPU seconds of a dry run, all filters on all hosts."""
        # Its caches are those of a process that just began.
        began = DryRun()
        spec = self._spec(flavor)
        gc.collect()
        started = time.process_time()
        with no_writes():
            answer = began.judge(Asked(self._context, spec, "made here"), every=True)
        spent = time.process_time() - started
        passed = sum(not refusing for refusing in answer.offered.values())
        return {"seconds": spent, "hosts": len(answer.offered), "passed": passed}

    def repeat(self, flavor, count):
        """Place so many VMs one after the other, and take them away at the end.

        Return (seconds, CPU seconds, VMs placed).
        """
        specs = [self._spec(flavor) for _ in range(count)]
        started, cpu = time.monotonic(), time.process_time()
        placed = [self._place(spec) for spec in specs]
        spent = time.monotonic() - started, time.process_time() - cpu
        for spec, found in zip(specs, placed, strict=True):
            self._remove(spec, found)
        return *spent, sum(found is not None for found in placed)

    def arrive(self, flavor, *arguments, lasting=True):
        """See :func:`tests.benchmark.scheduling.limits.arrive`."""
        place, spec_of = self._place, lambda: self._spec(flavor)
        return limits.arrive(place, self.manager, spec_of, *arguments, lasting=lasting)

    def draw(self, flavor, *arguments):
        """Do the same with VMs that are gone before the next one comes."""
        return self.arrive(flavor, *arguments, lasting=False)

    def _spec(self, flavor):
        self._number += 1
        return flavors.request(self._context, self._scheme, flavor, self._number)

    def _place(self, spec):
        try:
            [found] = self.manager.select_destinations(
                self._context,
                spec_obj=spec,
                instance_uuids=[spec.instance_uuid],
                return_objects=True,
                return_alternates=True,
            )
        except messaging.ExpectedException as error:
            # What nova-scheduler answers with, over its bus.
            if not isinstance(error.exc_info[1], exception.NoValidHost):
                raise
            return None
        return found[0]

    def _remove(self, spec, placed):
        if placed is not None:
            self.manager.placement_client.delete_allocation_for_instance(
                self._context, spec.instance_uuid, force=True
            )


def _serve(pipe, scheme, path):
    """Carry out orders until there is None."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    orders = Orders(scheme, path)
    while (order := pipe.recv()) is not None:
        name, args = order
        try:
            pipe.send((True, getattr(orders, name)(*args)))
        except Exception:  # noqa: BLE001 - told to who asked
            pipe.send((False, traceback.format_exc()))
