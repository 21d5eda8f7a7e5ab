# SPDX-License-Identifier: Apache-2.0
"""How the work grows with the cloud, counted in calls: no busy machine changes it."""

import cProfile
import gc
import itertools

import testtools

from nova_perfvm.diagnose import audit, capacity, explain
from nova_perfvm.diagnose.verdicts import settings_for
from tests.unit.facts.snapshot.clouds import GENERAL, HP, POLICY, Cloud

SETTINGS = settings_for(POLICY)


def cloud(count):
    """Return a cloud of hosts that are full, half full, empty and shared."""
    made = Cloud()
    for number in range(count):
        name = f"hp{number}"
        made.add_host(name, "shared" if number % 4 == 3 else "dedicated")
        for node in range(number % 4 if number % 4 != 3 else 0):
            made.add_hp(f"{name}-{node}", name, first=20 * node, node=node)
        if number % 4 == 3:
            made.add_general(f"{name}-g", name)
    return made.snapshot()


def calls(work, *arguments, **keywords):
    """Return how many functions of Python are called."""
    profile = cProfile.Profile(builtins=False)
    # Garbage of other tests has finalizers, which are calls as well.
    gc.collect()
    gc.disable()
    try:
        profile.runcall(work, *arguments, **keywords)
    finally:
        gc.enable()
    return sum(entry.callcount for entry in profile.getstats())


def explained(snapshot, flavor):
    """Explain a request."""
    request, _ = explain.request_of(snapshot, flavor=flavor)
    found = explain.explain(POLICY, snapshot, request, SETTINGS)
    found.rows()


def counted(snapshot):
    """Count slots, by aggregate too."""
    capacity.aggregate_capacity(snapshot, capacity.host_capacity(POLICY, snapshot))


def audited(snapshot):
    """Audit."""
    audit.run(audit.Subject(POLICY, snapshot))


def steps(work, *arguments):
    """Return how many calls the second forty hosts add, and the third."""
    # What is done once in a process is not to be counted.
    work(cloud(4), *arguments)
    counts = [calls(work, cloud(hosts), *arguments) for hosts in (40, 80, 120)]
    return [more - fewer for fewer, more in itertools.pairwise(counts)]


class GrowthTest(testtools.TestCase):
    def test_each_host_is_as_much_work_as_those_before_it(self):
        for work, arguments in (
            (explained, (HP,)),
            (explained, (GENERAL,)),
            (counted, ()),
            (audited, ()),
        ):
            second, third = steps(work, *arguments)
            self.assertGreater(second, 40)
            self.assertEqual(second, third)
