# SPDX-License-Identifier: Apache-2.0
"""Explain beside the scheduler: random states of a sandbox, two opinions on each.

Run as a program of its own, for Nova's configuration is one for a process::

    python -m tests.sandbox.agreement DIRECTORY --states 100 --seed 8

A nova-scheduler is asked as nova-conductor asks it, for one host at a time.
"""

import argparse
import collections
import datetime as dt
import json
import random
import re
import sys
import time
import uuid

import sqlalchemy as sa
from nova import context, exception, objects
from nova.scheduler import rpcapi

from nova_perfvm import constants as const
from nova_perfvm.cloud import candidates, errors, nova_database
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.documents.config_file import read_settings
from nova_perfvm.policy import loader
from nova_perfvm.rules import REASON_CODES
from tests import request_specs
from tests.processes import waiting
from tests.processes.sandbox import Sandbox
from tests.sandbox.labelled_states import LabelledStates
from tests.sandbox.states import States

_REFUSED = re.compile(
    r"PerfVMFilter rejected (?:\d+ of \d+ hosts for )?(\S+) .*?: (?:\d+ )?([a-z_.]+)"
)
# A compute's report may be on its way: look and ask again, both.
_LOOKS = 3
# Three of a compute's looks at itself.
_SETTLED_S = 180


class Scheduler:
    """nova-scheduler, asked for single hosts."""

    def __init__(self, sandbox, api):
        self._api = api
        self._engine = sa.create_engine(sandbox.settings.database_url("nova_cell1"))
        self._user = str(uuid.uuid4())
        self._client = rpcapi.SchedulerAPI()
        self._codes = {}
        self._offsets = {
            path: path.stat().st_size
            for path in sandbox.layout.logs.glob("nova-scheduler-*.log")
        }
        self._layout = sandbox.layout
        self._first = self._used()
        self._resident = self._guests()

    def asks(self, asked, image, host):
        """Return whether it takes a server, and the code that the filter logs.

        :param image: as Nova hands it on
        """
        server = str(uuid.uuid4())
        asker = context.RequestContext(
            user_id=self._user, project_id=asked.project, is_admin=True
        )
        spec = request_specs.new_server(asker, server, asked.flavor, image, asked.zone)
        spec.requested_destination = objects.Destination(host=host)
        try:
            self._client.select_destinations(asker, spec, [server], return_objects=True)
        except exception.NoValidHost:
            self._read_logs()
            return False, self._codes.get(server)
        self._api.placement("DELETE", f"/allocations/{server}")
        self._forget(host)
        return True, None

    def _forget(self, host):
        """Let the schedulers read the host again, not what they placed in thought."""
        later = dt.datetime.now(dt.UTC).replace(tzinfo=None) + dt.timedelta(seconds=2)
        with self._engine.begin() as connection:
            connection.execute(
                sa.text(
                    "UPDATE compute_nodes SET updated_at = :now WHERE host = :host"
                ),
                {"now": later, "host": host},
            )

    def settle(self):
        """Wait until the schedulers see the hosts as they were at first.

        A compute that is down is not told that a server is deleted: it finds out
        within a minute, and ends the guest later than it says so.  And what it
        reports in the second in which a scheduler placed a server in thought does
        not end that thought, for the database keeps whole seconds.
        """
        waiting.until(
            lambda: (
                all(self._first[host] >= used for host, used in self._used().items())
                and self._guests() <= self._resident
            ),
            "the computes to report that the servers are gone, and their guests",
            _SETTLED_S,
        )
        time.sleep(1)
        for host in self._first:
            self._forget(host)

    def _used(self):
        with self._engine.begin() as connection:
            rows = connection.execute(
                sa.text("SELECT host, vcpus_used FROM compute_nodes WHERE deleted = 0")
            )
            return dict(map(tuple, rows))

    def _guests(self):
        hosts = (self._layout.domains(host) for host in self._first)
        return {path for directory in hosts for path in directory.glob("*.xml")}

    def _read_logs(self):
        for path, offset in self._offsets.items():
            with path.open() as log:
                log.seek(offset)
                text = log.read()
                self._offsets[path] = log.tell()
            self._codes.update(_REFUSED.findall(text))


class Agreement:
    """Compares, and keeps count of what was met."""

    def __init__(self, sandbox, seed):
        layout = sandbox.layout
        nova_database.configure(str(layout.etc / "nova" / "nova.conf"))
        objects.register_all()
        self._api = API(sandbox.connect())
        self._policy = loader.load(layout.policy)
        options = read_settings(str(layout.etc / "nova" / "scheduler.conf"))
        self._settings = settings_for(self._policy, options)
        self._scheduler = Scheduler(sandbox, self._api)
        self._random = random.Random(seed)
        labelled = self._policy.managed_hosts == "labelled"
        kind = LabelledStates if labelled else States
        self.states = kind(sandbox, self._api, self._policy, self._random)
        self.counts = collections.Counter()
        self.codes = collections.Counter()
        self.logged = collections.Counter()
        self.different = []

    def run(self, states, wanted):
        """Compare in so many states, and in up to as many more if need be.

        :param wanted: how often each of the ``codes`` of explain has to come up, and
            each that is ``logged`` by the filter
        """
        for number in range(2 * states):
            if number >= states and not self.lacking(wanted):
                break
            self._compare(number)

    def lacking(self, wanted):
        """List the codes that came up too seldom."""
        return [
            code
            for kind, met in (("codes", self.codes), ("logged", self.logged))
            for code, times in wanted.get(kind, {}).items()
            if met[code] < times
        ]

    def _compare(self, number):
        done = self.states.change()
        requests = self.states.requests()
        for _ in range(_LOOKS):
            seen = self._seen()
            judged = [self._compared(seen, asked) for asked in requests]
            wrong = [line for lines, _ in judged for line in lines]
            if not wrong:
                break
            self.counts["looked again"] += 1
        self.different += [f"state {number} ({done}): {line}" for line in wrong]
        for _, verdicts in judged:
            self._count(verdicts)
        self.counts["states"] += 1

    def undo(self):
        """Leave the cloud as it was."""
        self.states.undo()
        self._scheduler.settle()

    def _seen(self):
        taken = read_snapshot(self._api)
        return nova_database.with_cells(taken, nova_database.compute_nodes([]))

    def _compared(self, seen, asked):
        """Return what the two disagree on, and explain's verdicts."""
        verdicts = self._explained(seen, asked).verdicts
        wrong = []
        for verdict in verdicts:
            host = verdict.view.host
            image = self.states.images[asked.image]
            taken, code = self._scheduler.asks(asked, image, host)
            # The arithmetic has to know why Placement refuses.
            unknown = const.PLACEMENT_REFUSED in {r.code for r in verdict.placement}
            if unknown or (verdict.accepted, _logged_as(verdict)) != (taken, code):
                wrong.append(
                    f"{' '.join(asked)} on {host}: explain "
                    f"{verdict.code or 'accepts'}, scheduler "
                    f"{'accepts' if taken else code or 'refuses'}"
                )
        return wrong, verdicts

    def _explained(self, seen, asked):
        request, _ = explain.request_of(
            seen,
            flavor=asked.flavor,
            image=asked.image,
            volume_backed=False,
            availability_zone=asked.zone,
            project=asked.project,
        )
        try:
            offered = candidates.offered(
                self._api, request, self._settings, seen.aggregates
            )
        except errors.CloudError as exc:
            if exc.status != 400:
                raise
            # Such as a trait that nobody has made.
            offered = frozenset()
        return explain.explain(
            self._policy, seen, request, self._settings, offered=offered
        )

    def _count(self, verdicts):
        for verdict in verdicts:
            self.counts["accepted" if verdict.accepted else "refused"] += 1
            self.codes.update({reason.code for reason in verdict.reasons})
            self.logged.update(filter(None, [_logged_as(verdict)]))


def _logged_as(verdict):
    """Return the code that the filter logs; None where it is not asked."""
    refused = [layer[0].code for layer in verdict.filters]
    ours = REASON_CODES | {const.CELLS_UNKNOWN}
    if verdict.before or verdict.placement or not {*refused[:1]} & ours:
        return None
    return refused[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--states", type=int, default=100)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--wanted", type=json.loads, default={}, metavar="JSON")
    args = parser.parse_args()
    agreement = Agreement(Sandbox(args.directory), args.seed)
    try:
        agreement.run(args.states, args.wanted)
    finally:
        agreement.undo()
    json.dump(
        {
            "counts": agreement.counts,
            "codes": agreement.codes,
            "logged": agreement.logged,
            "lacking": agreement.lacking(args.wanted),
            "different": agreement.different,
        },
        sys.stdout,
        indent=1,
    )


if __name__ == "__main__":
    main()
